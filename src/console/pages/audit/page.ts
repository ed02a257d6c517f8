import '../../components/shared.ts';
import type { AuditEvent, AuditNames } from '../../../journal/audit.ts';
import { apiPath, type ListOf, timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { SelectField, TextField } from '../../components/field.ts';
import { FieldChanges } from '../../components/in_words.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, OffsetPages, Page } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Table } from '../../components/table.ts';
import { formatQuantity, momentOfClocks, toClocks } from '../../formatting/format.ts';
import { html, type Content, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { paths, serverPath } from '../../router/paths.ts';

const pageSize = 50;

/** Filters by their name in the address and in the API. */
const filterNames = [
  'user',
  'key',
  'action',
  'exclude_action',
  'outcome',
  'object',
  'since',
  'until',
] as const;
type FilterName = (typeof filterNames)[number];

const filterOf = (name: FilterName): string | null => currentQuery.value.get(name);

/** Filters by a value, and shows the first page. */
const filterBy = (name: FilterName, value: string | null): void => setQuery({ [name]: value, offset: null });

const showAll = (): void =>
  setQuery({ ...Object.fromEntries(filterNames.map((name) => [name, null])), offset: null });

/** Who changed what in the project, newest first. */
export default function AuditPage(): View {
  const offset = Number(currentQuery.value.get('offset') ?? 0);
  const filters = Object.fromEntries(filterNames.map((name) => [name, filterOf(name)]));
  const isFiltered = filterNames.some((name) => filterOf(name) !== null);
  const events = useResource<ListOf<AuditEvent>>('audit/', {
    query: { limit: pageSize, offset, ...filters },
    keepsData: true,
  });
  return html`<${Page}
    title="Audit trail"
    subtitle="Changes, newest first. Reads are not recorded."
    actions=${html`<${Button} href=${serverPath(apiPath('audit/', { ...filters, format: 'csv' }))}
        >Download CSV<//
      >
      <${Button} onClick=${() => void events.reload()}>Refresh<//>`}
  >
    <${Filters} isFiltered=${isFiltered} />
    <${Loaded} resource=${events}>
      ${(page: ListOf<AuditEvent>) =>
        html`<div class="audit">
            <${Table}
              caption="Audit events"
              columns=${columns}
              rows=${page.results}
              rowKey=${({ id }: AuditEvent) => id}
              empty=${
                isFiltered
                  ? html`<${EmptyState} title="No event matches"
                      ><${Button} onClick=${showAll}>Show all<//><//
                    >`
                  : html`<${EmptyState} title="Nothing was changed yet" />`
              }
            />
          </div>
          <${OffsetPages} page=${page} offset=${offset} size=${pageSize} />`}
    <//>
  <//>`;
}

/** Choices of what the trail names. A value of the address that is not among them stays chosen. */
function Choice({
  label,
  name,
  choices,
}: {
  readonly label: string;
  readonly name: FilterName;
  readonly choices: readonly { readonly value: string; readonly label: string }[];
}): View {
  const value = filterOf(name) ?? '';
  const isUnknown = value !== '' && !choices.some((choice) => choice.value === value);
  return html`<${SelectField}
    label=${label}
    value=${value}
    options=${[{ value: '', label: 'All' }, ...choices, ...(isUnknown ? [{ value, label: value }] : [])]}
    onChange=${(chosen: string) => filterBy(name, chosen)}
  />`;
}

const signIns = 'session.sign_in,session.sign_out';

/** Chooses one action, or all but those that hide the others by their number. */
function ActionChoice({ actions }: { readonly actions: readonly string[] }): View {
  const excluded = filterOf('exclude_action');
  const withoutSignIns = { value: `!${signIns}`, label: 'All but sign-ins' };
  const value = excluded === null ? (filterOf('action') ?? '') : `!${excluded}`;
  const options = [{ value: '', label: 'All' }, withoutSignIns, ...actions.map(toChoice)];
  if (!options.some((option) => option.value === value)) options.push(toChoice(value));
  return html`<${SelectField}
    label="Action"
    value=${value}
    options=${options}
    onChange=${(chosen: string) =>
      setQuery({
        action: chosen.startsWith('!') ? null : chosen,
        exclude_action: chosen.startsWith('!') ? chosen.slice(1) : null,
        offset: null,
      })}
  />`;
}

const toChoice = (value: string) => ({ value, label: value });

function Filters({ isFiltered }: { readonly isFiltered: boolean }): View {
  const { data, failure } = useResource<AuditNames & { readonly outcomes: readonly string[] }>(
    'console/audit/names/',
  );
  const { users = [], keys = [], actions = [], outcomes = [] } = data ?? {};
  const time = (label: string, name: 'since' | 'until') =>
    html`<${TextField}
      label=${label}
      type="datetime-local"
      value=${toClocks(filterOf(name), timezone.value)}
      onInput=${(value: string) => filterBy(name, momentOfClocks(value, timezone.value) ?? null)}
    />`;
  return html`<div class="filters audit-filters" role="search" aria-label="Filters">
      <${Choice}
        label="User"
        name="user"
        choices=${users.map(({ id, email }) => ({ value: String(id), label: email }))}
      />
      <${Choice}
        label="API key"
        name="key"
        choices=${keys.map(({ id, name, prefix }) => ({ value: id, label: `${name} ${prefix}…`.trim() }))}
      />
      <${ActionChoice} actions=${actions} />
      <${Choice} label="Outcome" name="outcome" choices=${outcomes.map(toChoice)} />
      <${TextField}
        label="Object"
        type="search"
        placeholder="batch_exports/…"
        value=${filterOf('object') ?? ''}
        onInput=${(value: string) => filterBy('object', value)}
      />
      ${time('From', 'since')} ${time('Until', 'until')}
      ${isFiltered && html`<${Button} onClick=${showAll}>Show all<//>`}
    </div>
    ${failure && html`<p class="field-error" role="alert">${failure.message}</p>`}`;
}

/** A value as a button that filters by it. */
const filtering = (name: FilterName, value: string, label: Content): View =>
  html`<button
    class="audit-value"
    type="button"
    title="Show only these"
    onClick=${() => filterBy(name, value)}
  >
    ${label}
  </button>`;

const none = (): View => html`<span class="muted">–</span>`;

const columns: readonly Column<AuditEvent>[] = [
  { header: 'Time', render: ({ at }) => html`<${Moment} at=${at} exact=${true} />` },
  {
    header: 'User',
    render: ({ user }) => (user ? filtering('user', String(user.id), user.email) : none()),
  },
  {
    header: 'API key',
    secondary: true,
    render: ({ key }) =>
      key
        ? filtering(
            'key',
            key.id,
            html`${key.name !== '' && html`<span>${key.name}</span>`} <code>${key.prefix}…</code>`,
          )
        : none(),
  },
  { header: 'Action', render: ({ action }) => filtering('action', action, action) },
  {
    header: 'Object',
    render: ({ object, object_name: name, changes }) =>
      html`<div class="audit-about">
        ${object === null ? none() : html`<${ObjectOf} path=${object} name=${name} />`}
        <${Changes} changes=${changes} />
      </div>`,
  },
  {
    header: 'Outcome',
    render: ({ outcome, status, detail }) =>
      html`<div class="audit-outcome">
        <${StatusBadge} status=${outcome} />
        <span class="muted"> ${[status, detail].filter(Boolean).join(', ')} </span>
      </div>`,
  },
  {
    header: 'From',
    secondary: true,
    render: ({ address, client }) =>
      html`<div class="audit-client">
        <span>${address ?? 'command line'}</span>
        <span class="muted" title=${client}>${client}</span>
      </div>`,
  },
];

/** More fields than these are shown on demand. */
const shownFields = 3;

function Changes({ changes }: Pick<AuditEvent, 'changes'>): View {
  if (changes.length === 0) return null;
  return html`<details open=${changes.length <= shownFields}>
    <summary>${formatQuantity(changes.length, 'field')}</summary>
    <${FieldChanges} changes=${changes} />
  </details>`;
}

/** The name and the path of an object; the name of an export, also above its parts, leads to its page. */
function ObjectOf({ path, name }: { readonly path: string; readonly name: string | null }): View {
  const id = /^batch_exports\/([0-9a-f-]{36})(?:\/|$)/.exec(path)?.[1];
  const shown = name ?? (id === undefined ? null : 'Open');
  return html`${shown !== null && html`<div>${id === undefined ? shown : html`<a href=${paths.export(id)}>${shown}</a>`}</div>`}
    <div class="audit-object">${filtering('object', path, path)}</div>`;
}
