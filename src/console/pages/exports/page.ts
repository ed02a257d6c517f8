import { useComputed, useSignal } from '@preact/signals';
import { useCallback, useRef } from 'preact/hooks';
import type { Overview, OverviewItem } from '../../../http/schemas/console_overview.ts';
import { useResource } from '../../api/resource.ts';
import { may } from '../../api/session.ts';
import { Button } from '../../components/button.ts';
import { EmptyState } from '../../components/empty_state.ts';
import { IntervalLegend } from '../../components/interval_legend.ts';
import { Loaded } from '../../components/loaded.ts';
import { Page } from '../../components/page.ts';
import { formatQuantity } from '../../formatting/count.ts';
import { html, type View } from '../../html.ts';
import { useShortcut } from '../../keyboard.ts';
import { currentQuery, navigate, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import { ExportRow } from './export_row.ts';

/** How many rows are shown at once; a button shows more. */
const pageSize = 100;

/** Every export, those that need attention first. */
export default function ExportsPage(): View {
  const overview = useResource<Overview>('console/overview/', { live: 'all' });
  useShortcut('c', 'Create an export', goToNewExport);
  const create =
    may('batch_export:write') && html`<${Button} kind="primary" href=${paths.newExport}>New export<//>`;
  return html`<${Page}
    title="Exports"
    subtitle=${overview.data && summaryOf(overview.data.exports)}
    actions=${create}
  >
    <${Loaded} resource=${overview}>
      ${({ exports }: Overview) =>
        exports.length === 0
          ? html`<${EmptyState} title="No exports yet">
              <p>An export copies the rows of each interval to your bucket, hour after hour.</p>
              ${create || html`<p>Sign in with a key that has the scope batch_export:write to create one.</p>`}
            <//>`
          : html`<${ExportList} exports=${exports} />`}
    <//>
  <//>`;
}

const goToNewExport = () => {
  if (may('batch_export:write')) navigate(paths.newExport);
};

/** `12 exports, 2 need attention`. */
function summaryOf(exports: readonly OverviewItem[]): string {
  const all = formatQuantity(exports.length, 'export');
  const urgent = exports.filter(({ condition }) => condition !== 'active' && condition !== 'paused').length;
  return urgent === 0
    ? `${all}, none needs attention`
    : `${all}, ${urgent} ${urgent === 1 ? 'needs' : 'need'} attention`;
}

function ExportList({ exports }: { readonly exports: readonly OverviewItem[] }): View {
  const shown = useSignal(pageSize);
  const search = useRef<HTMLInputElement>(null);
  const focusSearch = useCallback(() => search.current?.focus(), []);
  useShortcut('/', 'Search exports', focusSearch);
  const text = useComputed(() => currentQuery.value.get('search') ?? '');
  const wanted = text.value.toLowerCase();
  const found = exports.filter(({ name, destination, id }) =>
    `${name} ${destination} ${id}`.toLowerCase().includes(wanted),
  );
  return html`<div class="export-list">
    <div class="export-list-tools">
      <input
        class="input"
        type="search"
        aria-label="Search exports"
        placeholder="Search by name, bucket or id"
        ref=${search}
        value=${text.value}
        onInput=${(event: InputEvent) => setQuery({ search: (event.currentTarget as HTMLInputElement).value })}
      />
      <${IntervalLegend}
        statuses=${['exported', 'running', 'unsettled', 'held', 'failed', 'gap', 'due', 'paused']}
      />
    </div>
    ${
      found.length === 0
        ? html`<${EmptyState} title="No export matches “${text.value}”">
            <${Button} onClick=${() => setQuery({ search: null })}>Show all<//>
          <//>`
        : html`<div class="table-scroll">
            <table class="table export-table">
              <caption class="visually-hidden">
                Exports, those that need attention first
              </caption>
              <thead>
                <tr>
                  <th scope="col">Export</th>
                  <th scope="col">Status</th>
                  <th scope="col">Fresh until</th>
                  <th scope="col">Last 48 intervals</th>
                  <th scope="col" class="right">Last day</th>
                  <th scope="col">Next run</th>
                </tr>
              </thead>
              <tbody>
                ${found.slice(0, shown.value).map((item) => html`<${ExportRow} key=${item.id} item=${item} />`)}
              </tbody>
            </table>
          </div>`
    }
    ${
      found.length > shown.value &&
      html`<${Button}
        onClick=${() => {
          shown.value += pageSize;
        }}
        >Show ${Math.min(pageSize, found.length - shown.value)} more of ${found.length - shown.value}<//
      >`
    }
  </div>`;
}
