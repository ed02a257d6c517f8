import { useSignal } from '@preact/signals';
import type { TableCheckResponse, TableHistoryResponse, TableResponse } from '../../../http/tables/schema.ts';
import { timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { ActionButton, Button } from '../../components/actions.ts';
import { Moment } from '../../components/moment.ts';
import { EmptyState, Loaded, Section } from '../../components/page.ts';
import { StatusBadge } from '../../components/statuses.ts';
import { type Column, Facts, Table as Rows } from '../../components/table.ts';
import { formatBytes, formatCount, formatInterval } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { currentQuery, setQuery } from '../../router/location.ts';
import type { PartProps } from './export_actions.ts';

type Version = TableHistoryResponse['results'][number];
type TableFinding = TableCheckResponse['findings'][number];

/** Versions of a page. On a phone each has several lines. */
const pageSize = 10;

/** The table of an export: what it is, whether it is what exportd made it, and its versions. */
export function Table({ found, reload }: PartProps): View {
  const path = `batch_exports/${found.id}/table/`;
  const described = useResource<TableResponse>(path);
  const before = currentQuery.value.get('before');
  const history = useResource<TableHistoryResponse>(`${path}history/`, {
    query: { limit: pageSize, before: before ?? undefined },
    keepsData: true,
  });
  const check = useSignal<TableCheckResponse | undefined>(undefined);
  const command = (name: string): string[] => ['table', name, found.id];
  const reloadAll = () => Promise.all([described.reload(), history.reload(), reload()]);
  return html`
    <div class="page-actions">
      <${ActionButton}
        action=${{
          label: 'Check',
          method: 'POST',
          path: `${path}check/`,
          body: {},
          command: command('check'),
          done: 'Checked.',
          onDone: (response: unknown) => {
            check.value = response as TableCheckResponse;
            return reload();
          },
        }}
      />
      <${ActionButton}
        action=${{
          label: 'Repair',
          method: 'POST',
          path: `${path}repair/`,
          body: {},
          command: command('repair'),
          done: 'The table is what its manifests say.',
          confirm: {
            title: 'Repair the table?',
            text: 'Writes one version that makes the table what the current manifests say. Files that another program added are taken out of it. Stop that program first.',
          },
          onDone: () => {
            check.value = undefined;
            return reloadAll();
          },
        }}
      />
    </div>
    ${check.value && html`<${Findings} check=${check.value} />`}
    <${Loaded} resource=${described}>${(table: TableResponse) => html`<${Description} table=${table} />`}<//>
    <${Section} title="Versions">
      <${Loaded} resource=${history}>
        ${({ results, next_before }: TableHistoryResponse) =>
          html`<${Rows}
              caption="Versions"
              columns=${versionColumns}
              rows=${results}
              rowKey=${({ version }: Version) => String(version)}
              empty=${html`<${EmptyState} title="No version yet" />`}
            />
            <${VersionPages} before=${before} next=${next_before} newest=${described.data?.version ?? 0} />`}
      <//>
    <//>
  `;
}

/** Buttons to the neighbours of a page of versions, which are numbered without gaps. */
function VersionPages({
  before,
  next,
  newest,
}: {
  readonly before: string | null;
  readonly next: number | null;
  readonly newest: number;
}): View {
  if (before === null && next === null) return null;
  const newer = Number(before) + pageSize;
  return html`<div class="page-actions">
    <${Button}
      disabled=${before === null}
      onClick=${() => setQuery({ before: newer > newest ? null : String(newer) })}
      >Newer<//
    >
    <${Button} disabled=${next === null} onClick=${() => setQuery({ before: String(next) })}>Older<//>
  </div>`;
}

function Description({ table }: { readonly table: TableResponse }): View {
  const { columns, partition_columns: partitions, protocol } = table;
  return html`<${Facts}
    look="card"
    facts=${[
      ['Location', html`<code>${table.location}</code>`],
      ['Version', String(table.version)],
      ['Files', formatCount(table.files)],
      ['Rows', table.rows === null ? 'unknown' : formatCount(table.rows)],
      ['Size', formatBytes(table.bytes)],
      ['Newest checkpoint', table.checkpoint === null ? 'none' : String(table.checkpoint)],
      ['Protocol', `${protocol.reader}/${protocol.writer}`],
      ['Partitions', partitions.length === 0 ? 'none' : partitions.join(', ')],
      ['Columns', columns.map(({ name, type }) => `${name} ${type}`).join(', '), 'wide'],
    ]}
  />`;
}

function Findings({ check: { ok, findings, left_intervals } }: { readonly check: TableCheckResponse }): View {
  return html`<${Section} title="Check">
    <p role="status">
      <${StatusBadge} status=${ok ? 'verified' : 'findings'} />
      ${left_intervals > 0 && html`<span class="muted"> ${formatCount(left_intervals)} intervals were not compared.</span>`}
    </p>
    ${
      findings.length > 0 &&
      html`<${Rows}
        caption="Findings"
        columns=${findingColumns}
        rows=${findings}
        rowKey=${({ kind, object }: TableFinding) => `${kind} ${object ?? ''}`}
      />`
    }
  <//>`;
}

const findingColumns: readonly Column<TableFinding>[] = [
  { header: 'Finding', render: ({ detail }) => detail },
  { header: 'Object', render: ({ object }) => (object === null ? '–' : html`<code>${object}</code>`) },
];

const writers: Readonly<Record<Version['writer'], string>> = {
  run: 'exportd',
  repair: 'exportd, repair',
  other: 'Another program',
  unknown: 'Unreadable',
};

const versionColumns: readonly Column<Version>[] = [
  { header: 'Version', align: 'right', render: ({ version }) => String(version) },
  { header: 'Written', render: ({ committed_at: at }) => html`<${Moment} at=${at} />` },
  {
    header: 'Interval',
    render: ({ data_interval_start: start, data_interval_end: end }) =>
      start === null || end === null
        ? '–'
        : html`<span class="figures">${formatInterval(start, end, timezone.value)}</span>`,
  },
  {
    header: 'Generation',
    secondary: true,
    align: 'right',
    render: ({ generation }) => String(generation ?? '–'),
  },
  {
    header: 'Files',
    render: ({ files_added, files_removed }) =>
      html`<span class="figures">+${formatCount(files_added)} −${formatCount(files_removed)}</span>`,
  },
  {
    header: 'By',
    render: ({ writer, description, run_id }) =>
      html`<span
        >${writers[writer]}${description !== null && html`<span class="muted">, ${description}</span>`}${
          run_id !== null && html` <code class="muted" title=${run_id}>${run_id.slice(0, 8)}</code>`
        }</span
      >`,
  },
];
