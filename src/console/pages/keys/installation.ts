import { useSignal } from '@preact/signals';
import type { Project, User } from '../../../http/accounts.ts';
import { api, type ListOf, readSession } from '../../api/client.ts';
import { type Resource, useRequest } from '../../api/resource.ts';
import { Button, CommandLines, Dialog } from '../../components/actions.ts';
import { TextField } from '../../components/field.ts';
import { Loaded, Section } from '../../components/page.ts';
import { type Column, Table } from '../../components/table.ts';
import { html, type View } from '../../html.ts';

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

const forms = {
  user: {
    title: 'New user',
    path: '/api/users/',
    command: ['user', 'create'],
    fields: [
      { name: 'email', label: 'E-mail address', required: true, type: 'email' },
      { name: 'first_name', label: 'First name' },
      { name: 'last_name', label: 'Last name' },
      { name: 'role_at_organization', label: 'Role' },
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

/** The users of all projects, and forms that create users and projects: for keys with `installation:admin`. */
export function Installation({ users }: { readonly users: Resource<ListOf<User>> }): View {
  const opened = useSignal<keyof typeof forms | undefined>(undefined);
  const created = useSignal('');
  const open = (kind: keyof typeof forms) => () => (opened.value = kind);
  const afterCreation = async (what: User | Project) => {
    created.value =
      'email' in what
        ? `${what.email} was created, and has rights once a key is: choose the owner of a new key.`
        : `Project ${what.id}, ${what.name}, was created. This key has access to it.`;
    await ('email' in what ? users.reload() : readSession());
  };
  return html`<${Section}
    title="Users of all projects"
    actions=${html`<${Button} onClick=${open('user')}>New user…<//>
      <${Button} onClick=${open('project')}>New project…<//>`}
  >
    ${created.value !== '' && html`<p role="status">${created.value}</p>`}
    <${Loaded} resource=${users}>
      ${(page: ListOf<User>) =>
        html`<${Table}
          caption="Users"
          columns=${columns}
          rows=${page.results}
          rowKey=${({ id }: User) => id}
        />`}
    <//>
    ${
      opened.value !== undefined &&
      html`<${FormDialog}
        form=${forms[opened.value]}
        onClose=${() => (opened.value = undefined)}
        onCreated=${afterCreation}
      />`
    }
  <//>`;
}

const columns: readonly Column<User>[] = [
  { header: 'Id', render: ({ id }) => id },
  { header: 'E-mail address', render: ({ email }) => email },
  { header: 'Name', render: ({ first_name, last_name }) => `${first_name} ${last_name}`.trim() },
  { header: 'Role', render: ({ role_at_organization: role }) => (role === '' ? '–' : role) },
];

/** Asks for the fields of a form, and sends them. */
function FormDialog({
  form: { title, path, command, fields },
  onClose,
  onCreated,
}: {
  readonly form: Form;
  readonly onClose: () => void;
  readonly onCreated: (created: User | Project) => Promise<void>;
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
    await onCreated(await api.post<User | Project>(path, body));
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
