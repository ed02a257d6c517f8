import '../../components/shared.ts';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { SourceMappingResponse } from '../../../http/source/schema.ts';
import { api, type ExportdError, toFailure } from '../../api/client.ts';
import { Button, CopyBlock } from '../../components/actions.ts';
import { SelectField } from '../../components/field.ts';
import { FailureNotice, Page, Section } from '../../components/page.ts';
import { type Column, Table } from '../../components/table.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';

type Mapping = NonNullable<SourceMappingResponse['mapping']>;
type Role = Mapping['roles'][number];
/** Columns of the table by the columns of events that they are given to. */
type Chosen = Readonly<Record<string, string>>;

/** Gives the columns of a table to those of events, and shows the view, its index and its grants as one script. */
export default function SourcePage(): View {
  const table = currentQuery.value.get('table') ?? '';
  const chosen = useSignal<Chosen>({});
  const state = useSignal<{ readonly data?: SourceMappingResponse; readonly failure?: ExportdError }>({});
  const text = JSON.stringify(table === '' ? {} : { table, columns: chosen.value });
  useEffect(() => {
    const stop = new AbortController();
    api
      .post<SourceMappingResponse>('source/map/', JSON.parse(text), stop.signal)
      .then((data) => {
        state.value = { data };
      })
      .catch((error: unknown) => {
        if (!stop.signal.aborted) state.value = { ...state.peek(), failure: toFailure(error) };
      });
    return () => stop.abort();
  }, [text]);
  const { data, failure } = state.value;
  const options = ['', ...(data?.tables ?? []), ...(data?.tables.includes(table) === false ? [table] : [])];
  return html`<${Page}
    title="Map a table"
    parents=${[{ title: 'New export', path: paths.newExport }]}
    subtitle="exportd reads events from a view over your table. Nothing is changed here: the script below is for your database."
  >
    ${failure && html`<${FailureNotice} failure=${failure} />`}
    ${
      data === undefined
        ? failure
          ? html`<div><${Button} onClick=${() => setQuery({ table: null })}>Choose another table<//></div>`
          : html`<div class="loading" />`
        : html`<div class="filters">
              <${SelectField}
                label="Table"
                hint="Tables of the source that have a column with a time."
                value=${table}
                options=${[...new Set(options)].map((value) => ({ value, label: value === '' ? 'Choose…' : value }))}
                onChange=${(value: string) => {
                  chosen.value = {};
                  setQuery({ table: value === '' ? null : value });
                }}
              />
            </div>
            ${data.mapping && html`<${Mapped} mapping=${data.mapping} chosen=${chosen.value} onChoose=${(next: Chosen) => (chosen.value = next)} />`}`
    }
  <//>`;
}

function Mapped({
  mapping,
  chosen,
  onChoose,
}: {
  readonly mapping: Mapping;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}): View {
  const { columns, roles, rows, script, setting, to_choose, view, is_read } = mapping;
  const options = [
    { value: '', label: 'As drafted' },
    ...columns.map(({ name, type }) => ({ value: name, label: `${name} (${type})` })),
  ];
  const choose = (name: string) => (event: Event) => {
    const { [name]: _, ...others } = chosen;
    const value = (event.currentTarget as HTMLSelectElement).value;
    onChoose(value === '' ? others : { ...others, [name]: value });
  };
  const shown: readonly Column<Role>[] = [
    {
      header: 'Events have',
      render: ({ name, type, why }) =>
        html`<div>
          <strong>${name}</strong> <span class="muted">${type}</span>
          <p class="muted">${why}</p>
        </div>`,
    },
    {
      header: 'Your column',
      render: ({ name }) =>
        html`<select
          class="input"
          aria-label="Column for ${name}"
          value=${chosen[name] ?? ''}
          onChange=${choose(name)}
        >
          ${options.map(({ value, label }) => html`<option key=${value} value=${value} selected=${value === (chosen[name] ?? '')}>${label}</option>`)}
        </select>`,
    },
    {
      header: 'In the view',
      render: ({ name, sql, comment }) =>
        html`<div>
          <code class=${to_choose.includes(name) ? 'tone-danger' : ''}>${sql}</code>
          ${comment !== null && html`<p class="muted">${comment}</p>`}
        </div>`,
    },
  ];
  return html`<${Section} title="Columns">
      <div class="mapping">
        <${Table}
          caption="Columns of events"
          columns=${shown}
          rows=${roles}
          rowKey=${({ name }: Role) => name}
        />
      </div>
    <//>
    <${Section} title="Script">
      ${
        to_choose.length > 0
          ? html`<p class="tone-danger" role="status">Choose first: ${to_choose.join(', ')}.</p>`
          : html`<p>
              Run it as the owner of the table${is_read ? '' : html`, set <code>${setting}=${view}</code>`},
              then check the source in <a href=${paths.newExport}>a new export</a>.
            </p>`
      }
      <${CopyBlock} label="script" text=${script} />
    <//>
    <${Section} title="First rows"><${FirstRows} rows=${rows} isChosen=${to_choose.length === 0} /><//>`;
}

type MappedRow = NonNullable<Mapping['rows']>[number];

function FirstRows({ rows, isChosen }: { readonly rows: Mapping['rows']; readonly isChosen: boolean }): View {
  if (rows === null || !isChosen)
    return html`<p class="muted">Choose a column for each of the above first.</p>`;
  if (rows.length === 0) return html`<p class="muted">The table has no rows.</p>`;
  const names = Object.keys(rows[0] ?? {});
  return html`<div class="preview-rows" tabindex="0" role="region" aria-label="First rows">
    <${Table}
      caption="First rows"
      columns=${names.map((name): Column<MappedRow> => ({ header: name, render: (row) => row[name] ?? '–' }))}
      rows=${rows}
      rowKey=${(row: MappedRow) => row.uuid ?? JSON.stringify(row)}
    />
  </div>`;
}
