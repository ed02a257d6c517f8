import '../../components/shared.ts';
import { type Signal, useSignal } from '@preact/signals';
import type { ScopesResponse } from '../../../http/console/pages/schema.ts';
import type { Preset, Scope } from '../../../http/scopes.ts';
import { api, type ListOf, may, project, session, timezone } from '../../api/client.ts';
import { useRequest, useResource } from '../../api/resource.ts';
import {
  type Action,
  ActionButton,
  Button,
  CommandLines,
  Dialog,
  SecretDialog,
} from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, OffsetPages, Page } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { momentOfClocks } from '../../formatting/format.ts';
import { type Content, html, type View } from '../../html.ts';
import { useShortcut } from '../../keyboard.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { Installation } from './installation.ts';
import type { ApiKey } from '../../../http/accounts/api_keys.ts';
import type { InstallationUser } from '../../../http/accounts/users.ts';

const pageSize = 50;

const statusChoices = [
  { value: '', label: 'Active' },
  { value: 'revoked,expired', label: 'Ended' },
  { value: 'active,revoked,expired', label: 'All' },
];

/** What a dialog is open for: the new key, or the key that gets a successor. */
type Opened = 'new' | ApiKey | undefined;

/** The API keys of the project: who has one, for what, and until when. */
export default function KeysPage(): View {
  const opened = useSignal<Opened>(undefined);
  const status = currentQuery.value.get('status') ?? '';
  const offset = Number(currentQuery.value.get('offset') ?? 0);
  const keys = useResource<ListOf<ApiKey>>('keys/', {
    query: { limit: pageSize, offset, status: status === '' ? 'active' : status },
    keepsData: true,
  });
  const users = useResource<ListOf<InstallationUser>>(may('installation:admin') ? '/api/users/' : null, {
    query: { limit: 1_000 },
  });
  const choices = useResource<ScopesResponse>('console/scopes/');
  /** Also how many keys users have. */
  const reload = async () => {
    await Promise.all([keys.reload(), users.reload()]);
  };
  const create = () => (opened.value = 'new');
  const close = () => (opened.value = undefined);
  useShortcut('c', 'Create a key', create);
  return html`<${Page}
    title="API keys"
    subtitle="Each gives its scopes in its projects to the programs and people that have it."
    actions=${html`<${Button} kind="primary" onClick=${create}>New key…<//>`}
  >
    <div class="filters">
      <${SelectField}
        label="Status"
        value=${status}
        options=${statusChoices}
        onChange=${(value: string) => setQuery({ status: value, offset: null })}
      />
    </div>
    <${Loaded} resource=${keys}>
      ${(page: ListOf<ApiKey>) =>
        html`<div class="keys">
            <${Table}
              caption="API keys"
              columns=${columnsOf({ reload, rotate: (key) => (opened.value = key) })}
              rows=${page.results}
              rowKey=${({ id }: ApiKey) => id}
              empty=${html`<${EmptyState} title="No key has this status" />`}
            />
          </div>
          <${OffsetPages} page=${page} offset=${offset} size=${pageSize} />`}
    <//>
    ${
      opened.value === 'new' &&
      html`<${Loaded} resource=${choices}>
        ${(found: ScopesResponse) =>
          html`<${NewKeyDialog}
            choices=${found}
            users=${users.data?.results.filter(({ disabled_at }) => disabled_at === null) ?? []}
            onClose=${close}
            onCreated=${reload}
          />`}
      <//>`
    }
    ${may('installation:admin') && html`<${Installation} users=${users} reload=${reload} />`}
    ${
      typeof opened.value === 'object' &&
      html`<${RotateDialog} found=${opened.value} onClose=${close} onCreated=${reload} />`
    }
  <//>`;
}

const projectName = (id: number): string =>
  session.value?.projects.find((one) => one.id === id)?.name ?? `project ${id}`;

/** The key that this browser is signed in with. */
const isOwn = ({ id }: ApiKey): boolean => id === session.value?.key.id;

const columnsOf = ({
  reload,
  rotate,
}: {
  readonly reload: () => Promise<void>;
  readonly rotate: (key: ApiKey) => void;
}): readonly Column<ApiKey>[] => [
  {
    header: 'Name',
    render: (key) =>
      html`<div class="key-name">
        <span>${key.name === '' ? html`<span class="muted">No name</span>` : key.name}</span>
        <code class="muted">${key.prefix}…</code>
        ${isOwn(key) && html`<span class="muted">this console</span>`}
      </div>`,
  },
  { header: 'Status', render: ({ status }) => html`<${StatusBadge} status=${status} />` },
  {
    header: 'Scopes',
    render: ({ preset, scopes }) =>
      preset === null
        ? html`<${ScopeList} scopes=${scopes} />`
        : html`<details>
            <summary>${labelOfPreset(preset)}</summary>
            <${ScopeList} scopes=${scopes} />
          </details>`,
  },
  {
    header: 'Projects',
    render: ({ projects }) =>
      html`<ul class="key-list">
        ${projects.map((id) => html`<li key=${id}>${projectName(id)}</li>`)}
      </ul>`,
  },
  {
    header: 'Created by',
    render: ({ created_by, created_with, user }) =>
      html`<div class="key-list">
        <span>${created_by?.email ?? 'command line'}</span>
        ${user.id !== created_by?.id && html`<span class="muted">for ${user.email}</span>`}
        ${created_with !== null && html`<span class="muted">with another key</span>`}
      </div>`,
  },
  { header: 'Created', render: ({ created_at }) => html`<${Moment} at=${created_at} />` },
  {
    header: 'Expires',
    render: ({ expires_at, revoked_at }) =>
      revoked_at !== null
        ? html`<span>revoked <${Moment} at=${revoked_at} /></span>`
        : expires_at === null
          ? html`<span class="muted">never</span>`
          : html`<${Moment} at=${expires_at} />`,
  },
  {
    header: 'Last use',
    render: ({ last_used_at }) =>
      last_used_at === null ? html`<span class="muted">never</span>` : html`<${Moment} at=${last_used_at} />`,
  },
  {
    header: 'Actions',
    render: (key) =>
      html`<div class="page-actions">
        ${
          mayRotate(key) &&
          html`<${Button} label="Rotate ${nameOf(key)}" onClick=${() => rotate(key)}>Rotate…<//>`
        }
        ${key.status === 'active' && html`<${ActionButton} action=${revokeAction(key, reload)} />`}
        ${key.active_descendants > 0 && html`<${ActionButton} action=${revokeDescendants(key, reload)} />`}
      </div>`,
  },
];

const ScopeList = ({ scopes }: Pick<ApiKey, 'scopes'>): View =>
  html`<ul class="key-scopes">
    ${scopes.map((scope) => html`<li key=${scope}><code>${scope}</code></li>`)}
  </ul>`;

const labelOfPreset = (preset: Preset): string => preset.charAt(0).toUpperCase() + preset.slice(1);

const nameOf = ({ name, prefix }: ApiKey): string => (name === '' ? prefix : name);

/** A key is rotated by its owner, with a key that has all that it grants. */
const mayRotate = ({ status, user, scopes, projects }: ApiKey): boolean =>
  status === 'active' &&
  user.id === session.value?.user.id &&
  scopes.every(may) &&
  projects.every((id) => session.value?.projects.some((one) => one.id === id));

const revokeAction = (key: ApiKey, reload: () => Promise<void>): Action => ({
  label: 'Revoke',
  kind: 'danger',
  scope: 'key:admin',
  method: 'DELETE',
  path: `keys/${key.id}/`,
  command: ['key', 'revoke', key.id],
  confirm: {
    title: `Revoke “${nameOf(key)}”?`,
    text: html`<p>
        It ends at once and permanently, with its sessions: programs that use${' '}
        <code>${key.prefix}…</code> are refused from now on. To replace a key without an interruption, rotate
        it.
      </p>
      ${key.active_descendants > 0 && html`<p>The ${madeWith(key)} it stay active.</p>`}
      ${isOwn(key) && html`<p>This console is signed in with it: you are signed out.</p>`}`,
  },
  done: 'The key was revoked.',
  onDone: reload,
});

const madeWith = ({ active_descendants: count }: ApiKey): string =>
  count === 1 ? 'key that was created with' : `${count} keys that were created with`;

/** Ends a key and all that were created with it: a stolen key may have made others. */
const revokeDescendants = (key: ApiKey, reload: () => Promise<void>): Action => ({
  label: 'Revoke with descendants',
  kind: 'danger',
  scope: 'key:admin',
  method: 'DELETE',
  path: `keys/${key.id}/?descendants=true`,
  command: ['key', 'revoke', key.id, '--descendants'],
  confirm: {
    title: `Revoke “${nameOf(key)}” and what it made?`,
    text: html`<p>
        It and the ${madeWith(key)} it, or with one of these in turn, end at once and permanently: programs
        that use them are refused from now on.
      </p>
      ${isOwn(key) && html`<p>This console is signed in with it: you are signed out.</p>`}`,
  },
  done: 'The keys were revoked.',
  onDone: reload,
});

/** A new key, shown once. */
type CreatedKey = ApiKey & { readonly key: string };

const useOfKey = 'Store it now, where passwords are kept: it is not shown again.';

/** A group of check boxes, of which some are checked. */
function Checks<Value extends string | number>({
  legend,
  values,
  chosen,
  fixed,
  nameOf: name = String,
}: {
  readonly legend: string;
  readonly values: readonly Value[];
  readonly chosen: Signal<readonly Value[]>;
  /** Stays checked. */
  readonly fixed?: Value | undefined;
  readonly nameOf?: (value: Value) => Content;
}): View {
  const toggle = (value: Value) => () => {
    const isChosen = chosen.value.includes(value);
    chosen.value = values.filter((one) => (one === value ? !isChosen : chosen.value.includes(one)));
  };
  return html`<fieldset class="checks">
    <legend>${legend}</legend>
    ${values.map(
      (value) =>
        html`<label key=${value} class="check">
          <input
            type="checkbox"
            checked=${chosen.value.includes(value)}
            disabled=${value === fixed}
            onChange=${toggle(value)}
          />
          <span>${name(value)}</span>
        </label>`,
    )}
  </fieldset>`;
}

/** What a key may do: one of the presets whose scopes this key has, or scopes of this key. */
function PermissionFields({
  offered,
  choices,
  preset,
  scopes,
}: {
  readonly offered: ScopesResponse['presets'];
  readonly choices: ScopesResponse['scopes'];
  readonly preset: Signal<Preset | undefined>;
  readonly scopes: Signal<readonly Scope[]>;
}): View {
  const descriptions = new Map(choices.map(({ name, description }) => [name, description]));
  const option = (value: Preset | undefined, label: string, description: string) =>
    html`<label key=${label} class="check">
      <input
        type="radio"
        name="permissions"
        checked=${preset.value === value}
        onChange=${() => (preset.value = value)}
      />
      <span>${label} <span class="muted">${description}</span></span>
    </label>`;
  return html`<fieldset class="checks">
      <legend>Permissions</legend>
      ${offered.map(({ name, description }) => option(name, labelOfPreset(name), description))}
      ${option(undefined, 'Custom', 'Has the scopes that you choose.')}
    </fieldset>
    ${
      preset.value === undefined &&
      html`<${Checks}
        legend="Scopes"
        values=${choices.map(({ name }) => name).filter(may)}
        chosen=${scopes}
        nameOf=${(scope: Scope) =>
          html`<code>${scope}</code> <span class="muted">${descriptions.get(scope)}</span>`}
      />`
    }`;
}

/** Asks for the fields of a key, creates it, and shows it once. */
function NewKeyDialog({
  choices,
  users,
  onClose,
  onCreated,
}: {
  readonly choices: ScopesResponse;
  /** Whom the key may be for, besides who creates it. */
  readonly users: readonly InstallationUser[];
  readonly onClose: () => void;
  readonly onCreated: () => unknown;
}): View {
  const { projects = [] } = session.value ?? {};
  const current = project.value?.id;
  const name = useSignal('');
  const offered = choices.presets.filter((one) => one.scopes.every(may));
  const preset = useSignal<Preset | undefined>(offered[0]?.name);
  const scopes = useSignal<readonly Scope[]>([]);
  const inProjects = useSignal<readonly number[]>(current === undefined ? [] : [current]);
  const expires = useSignal('');
  const own = session.value?.user;
  const owner = useSignal(own?.id);
  const isForOther = owner.value !== own?.id;
  const expires_at = momentOfClocks(expires.value, timezone.value);
  const body = {
    name: name.value.trim(),
    ...(preset.value === undefined ? { scopes: scopes.value } : { preset: preset.value }),
    ...(projects.length > 1 ? { projects: inProjects.value } : {}),
    ...(isForOther ? { user_id: owner.value } : {}),
    ...(expires_at === undefined ? {} : { expires_at }),
  };
  const { data, failure, isBusy, run } = useRequest(async () => {
    const created = await api.post<CreatedKey>('keys/', body);
    await onCreated();
    return created;
  });
  if (data)
    return html`<${SecretDialog} title="Key created" label="API key" secret=${data.key} onClose=${onClose}
      >${useOfKey}<//
    >`;
  const errorOf = (attr: string) => (failure?.attr === attr ? failure.message : undefined);
  const otherError =
    failure && !['name', 'expires_at'].includes(failure.attr ?? '') ? failure.message : undefined;
  return html`<${Dialog}
    title="New API key"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Create key<//>`}
  >
    <${TextField}
      label="Name"
      required
      hint="What the key is for, such as the program that uses it."
      value=${name.value}
      onInput=${(value: string) => (name.value = value)}
      error=${errorOf('name')}
    />
    ${
      users.length > 0 &&
      html`<${SelectField}
        label="Owner"
        hint="The audit trail names the user, and the key ends when the user is disabled."
        value=${String(owner.value)}
        options=${users.map(({ id, email }) => ({ value: String(id), label: email }))}
        onChange=${(value: string) => (owner.value = Number(value))}
      />`
    }
    <${PermissionFields} offered=${offered} choices=${choices.scopes} preset=${preset} scopes=${scopes} />
    ${
      projects.length > 1 &&
      html`<${Checks}
        legend="Projects"
        values=${projects.map(({ id }) => id)}
        chosen=${inProjects}
        fixed=${current}
        nameOf=${projectName}
      />`
    }
    <${TextField}
      label="Expires (${timezone.value})"
      type="datetime-local"
      hint="Empty: never, or as late as the operator allows."
      value=${expires.value}
      onInput=${(value: string) => (expires.value = value)}
      error=${errorOf('expires_at')}
    />
    ${otherError !== undefined && html`<p class="tone-danger" role="alert">${otherError}</p>`}
    <${CommandLines}
      request=${{
        method: 'POST',
        path: 'keys/',
        body,
        command: [
          'key',
          'create',
          '--name',
          body.name,
          ...(preset.value === undefined ? ['--scopes', scopes.value.join(',')] : ['--preset', preset.value]),
          ...(projects.length > 1 ? ['--project', inProjects.value.join(',')] : []),
          ...(isForOther ? ['--user', String(owner.value)] : []),
          ...(expires_at === undefined ? [] : ['--expires-at', expires_at]),
        ],
      }}
    />
  <//>`;
}

/** The first would sign this console out before it has shown the successor of its own key. */
const overlaps = [
  { value: '0', label: 'None: the old key ends at once' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
];

/** Asks how long a key outlives its successor, creates that, and shows it once. */
function RotateDialog({
  found,
  onClose,
  onCreated,
}: {
  readonly found: ApiKey;
  readonly onClose: () => void;
  readonly onCreated: () => unknown;
}): View {
  const overlap = useSignal('86400');
  const path = `keys/${found.id}/rotate/`;
  const body = { overlap_seconds: Number(overlap.value) };
  const { data, failure, isBusy, run } = useRequest(async () => {
    const created = await api.post<CreatedKey>(path, body);
    await onCreated();
    return created;
  });
  if (data)
    return html`<${SecretDialog} title="Key rotated" label="API key" secret=${data.key} onClose=${onClose}
      >${useOfKey}<//
    >`;
  return html`<${Dialog}
    title="Rotate “${nameOf(found)}”"
    onClose=${onClose}
    actions=${html`<${Button} onClick=${onClose}>Close<//>
      <${Button} kind="primary" busy=${isBusy} onClick=${() => void run()}>Rotate<//>`}
  >
    <p>
      Creates a key with the same name, scopes, projects and lifetime. Give it to all programs that use
      ${' '}<code>${found.prefix}…</code>, which works until the overlap ends.
    </p>
    ${isOwn(found) && html`<p>This console is signed in with this key: sign in with the new one before then.</p>`}
    <${SelectField}
      label="Overlap"
      value=${overlap.value}
      options=${overlaps.filter(({ value }) => value !== '0' || !isOwn(found))}
      onChange=${(value: string) => (overlap.value = value)}
    />
    ${failure && html`<p class="tone-danger" role="alert">${failure.message}</p>`}
    <${CommandLines}
      request=${{
        method: 'POST',
        path,
        body,
        command: ['key', 'rotate', found.id, '--overlap', overlap.value],
      }}
    />
  <//>`;
}
