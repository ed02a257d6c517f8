import { useSignal } from '@preact/signals';
import { api, type ListOf, readSession, session } from '../../api/client.ts';
import { type Resource, useRequest } from '../../api/resource.ts';
import { type Action, ActionButton, Button, CommandLines, Dialog } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import type { Project } from '../../../http/accounts/projects.ts';
import type { InstallationUser } from '../../../http/accounts/users.ts';

/** A field of a form. An empty one is not sent. */
interface FormField {
  readonly name: string;
  readonly label: string;
  readonly required?: boolean;
  readonly type?: 'text' | 'email' | 'number';
  readonly hint?: string;
}

/** What a form creates, in the API and on the command line. */
interface Form {
  readonly title: string;
  readonly path: string;
  readonly command: readonly string[];
  readonly fields: readonly FormField[];
}

/** What a dialog is open for: something new, or a project that gets another name. */
type Opened = keyof typeof forms | Project | undefined;

const forms = {
  user: {
    title: 'New user',
    path: '/api/users/',
    command: ['user', 'create'],
    fields: [
      { name: 'email', label: 'E-mail address', required: true, type: 'email' },
      { name: 'first_name', label: 'First name' },
      { name: 'last_name', label: 'Last name' },
    ],
  },
  project: {
    title: 'New project',
    path: '/api/projects/',
    command: ['project', 'create'],
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'id', label: 'Id', type: 'number', hint: 'The team_id of its rows. Empty: the next free one.' },
      { name: 'timezone', label: 'Time zone', hint: 'Such as Europe/Berlin. Empty: UTC.' },
      { name: 'week_start_day', label: 'First day of the week', hint: 'sunday or monday. Empty: sunday.' },
    ],
  },
} as const satisfies Readonly<Record<string, Form>>;

/** The users of all projects and the projects of the key, for keys with `installation:admin`: who ends, and what is created and renamed. */
export function Installation({
  users,
  reload,
}: {
  readonly users: Resource<ListOf<InstallationUser>>;
  /** Reads users and keys again. */
  readonly reload: () => Promise<void>;
}): View {
  const opened = useSignal<Opened>(undefined);
  const created = useSignal('');
  const open = (kind: Opened) => () => (opened.value = kind);
  const close = open(undefined);
  const afterCreation = async (what: InstallationUser | Project) => {
    created.value =
      'email' in what
        ? `${what.email} was created, and has rights once a key is: choose the owner of a new key.`
        : `Project ${what.id}, ${what.name}, was created. This key has access to it.`;
    await ('email' in what ? users.reload() : readSession());
  };
  return html`<${Section}
      title="Users of all projects"
      actions=${html`<${Button} onClick=${open('user')}>New user…<//>`}
    >
      ${created.value !== '' && html`<p role="status">${created.value}</p>`}
      <div class="keys">
        <${Loaded} resource=${users}>
          ${(page: ListOf<InstallationUser>) =>
            html`<${Table}
              caption="Users"
              columns=${userColumns(reload)}
              rows=${page.results}
              rowKey=${({ id }: InstallationUser) => id}
            />`}
        <//>
      </div>
    <//>
    <${Section}
      title="Projects of this key"
      actions=${html`<${Button} onClick=${open('project')}>New project…<//>`}
    >
      <div class="keys">
        <${Table}
          caption="Projects"
          columns=${projectColumns((found) => (opened.value = found))}
          rows=${session.value?.projects ?? []}
          rowKey=${({ id }: Project) => id}
        />
      </div>
    <//>
    ${
      typeof opened.value === 'string' &&
      html`<${FormDialog} form=${forms[opened.value]} onClose=${close} onCreated=${afterCreation} />`
    }
    ${typeof opened.value === 'object' && html`<${RenameDialog} found=${opened.value} onClose=${close} />`}`;
}

const userColumns = (reload: () => Promise<void>): readonly Column<InstallationUser>[] => [
  { header: 'Id', render: ({ id }) => id },
  { header: 'E-mail address', render: ({ email }) => email },
  { header: 'Name', render: ({ first_name, last_name }) => `${first_name} ${last_name}`.trim() },
  {
    header: 'Status',
    render: ({ disabled_at }) =>
      disabled_at === null
        ? html`<${StatusBadge} status="active" />`
        : html`<${StatusBadge} status="disabled" /> <${Moment} at=${disabled_at} />`,
  },
  { header: 'Active keys', align: 'right', render: ({ active_keys }) => active_keys },
  {
    header: 'Actions',
    render: (user) =>
      html`<div class="page-actions">
        <${ActionButton}
          action=${user.disabled_at === null ? disableAction(user, reload) : enableAction(user, reload)}
        />
      </div>`,
  },
];

const disableAction = (
  { id, email, active_keys: keys, active_keys_of_others: others }: InstallationUser,
  reload: () => Promise<void>,
): Action => ({
  label: 'Disable',
  kind: 'danger',
  scope: 'installation:admin',
  method: 'POST',
  path: `/api/users/${id}/disable/`,
  command: ['user', 'disable', String(id)],
  confirm: {
    title: `Disable ${email}?`,
    text: html`<p>
        ${keys === 0 ? 'The user has no active key.' : `${formatQuantity(keys, 'active key')} of the user and all sessions end at once and permanently: programs that use them are refused from now on.`}
        ${' '}No key can be created for the user until you enable the user again. Keys that ended stay
        revoked.
      </p>
      ${
        others > 0 &&
        html`<p>
          ${formatQuantity(others, 'active key')} that ${email} created for other users
          ${others === 1 ? 'stays' : 'stay'}. Revoke what ${email} may still know.
        </p>`
      }
      ${id === session.value?.user.id && html`<p>This console is signed in as this user: you are signed out.</p>`}`,
  },
  done: 'The user was disabled.',
  onDone: reload,
});

const enableAction = ({ id }: InstallationUser, reload: () => Promise<void>): Action => ({
  label: 'Enable',
  scope: 'installation:admin',
  method: 'POST',
  path: `/api/users/${id}/enable/`,
  command: ['user', 'enable', String(id)],
  done: 'The user was enabled. Create a key for the user.',
  onDone: reload,
});

const projectColumns = (rename: (found: Project) => void): readonly Column<Project>[] => [
  { header: 'Id', render: ({ id }) => id },
  { header: 'Name', render: ({ name }) => name },
  { header: 'Time zone', render: ({ timezone }) => timezone },
  {
    header: 'Actions',
    render: (found) =>
      html`<div class="page-actions">
        <${Button} label="Rename ${found.name}" onClick=${() => rename(found)}>Rename…<//>
      </div>`,
  },
];

/** Asks for another name of a project. */
function RenameDialog({ found, onClose }: { readonly found: Project; readonly onClose: () => void }): View {
  const name = useSignal(found.name);
  const path = `/api/projects/${found.id}/`;
  const body = { name: name.value.trim() };
  const { failure, isBusy, run } = useRequest(async () => {
    await api.patch<Project>(path, body);
    await readSession();
    onClose();
  });
  return html`<${Dialog}
    title="Rename “${found.name}”"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Rename<//>`}
  >
    <${TextField}
      label="Name"
      required
      value=${name.value}
      onInput=${(value: string) => (name.value = value)}
      error=${failure?.message}
    />
    <${CommandLines}
      request=${{ method: 'PATCH', path, body, command: ['project', 'rename', String(found.id), body.name] }}
    />
  <//>`;
}

/** Asks for the fields of a form, and sends them. */
function FormDialog({
  form: { title, path, command, fields },
  onClose,
  onCreated,
}: {
  readonly form: Form;
  readonly onClose: () => void;
  readonly onCreated: (created: InstallationUser | Project) => Promise<void>;
}): View {
  const values = useSignal<Readonly<Record<string, string>>>({});
  const given = fields.flatMap((field) => {
    const value = (values.value[field.name] ?? '').trim();
    return value === '' && field.required !== true ? [] : [{ ...field, value }];
  });
  const body = Object.fromEntries(
    given.map(({ name, type, value }) => [name, type === 'number' ? Number(value) : value]),
  );
  const { failure, isBusy, run } = useRequest(async () => {
    await onCreated(await api.post<InstallationUser | Project>(path, body));
    onClose();
  });
  const isOfField = fields.some(({ name }) => name === failure?.attr);
  return html`<${Dialog}
    title=${title}
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Create<//>`}
  >
    ${fields.map(
      ({ name, ...field }) =>
        html`<${TextField}
          key=${name}
          ...${field}
          value=${values.value[name] ?? ''}
          onInput=${(value: string) => (values.value = { ...values.peek(), [name]: value })}
          error=${failure?.attr === name ? failure.message : undefined}
        />`,
    )}
    ${failure && !isOfField && html`<p class="tone-danger" role="alert">${failure.message}</p>`}
    <${CommandLines}
      request=${{
        method: 'POST',
        path,
        body,
        command: [
          ...command,
          ...given.flatMap(({ name, value }) => [`--${name.replaceAll('_', '-')}`, value]),
        ],
      }}
    />
  <//>`;
}
