import '../../components/shared.ts';
import { useSignal } from '@preact/signals';
import { useCallback, useRef } from 'preact/hooks';
import type { Overview } from '../../../http/console/pages/schema.ts';
import { useResource } from '../../api/resource.ts';
import { may } from '../../api/client.ts';
import { Button } from '../../components/actions.ts';
import { messageInWords } from '../../components/in_words.ts';
import { EmptyState, Loaded, Page } from '../../components/page.ts';
import { IntervalLegend } from '../../components/interval_cells.ts';
import { formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { useShortcut } from '../../keyboard.ts';
import { currentQuery, navigate, setQuery } from '../../router/location.ts';
import { paths } from '../../router/paths.ts';
import { ExportRow, usePaused } from './export_row.ts';

/** How many rows are shown at once; a button shows more. */
const pageSize = 100;
/** The most rows that the server sends. */
const maxShown = 1_000;
/** The pause in typing after which exports are searched. */
const pauseMs = 200;

/** Every export, those that need attention first. */
export default function ExportsPage(): View {
  const shown = useSignal(pageSize);
  const search = usePaused(currentQuery.value.get('search') ?? '', pauseMs);
  const overview = useResource<Overview>('console/overview/', {
    query: { limit: shown.value, search },
    polls: true,
    keepsData: true,
  });
  useShortcut('c', 'Create an export', goToNewExport);
  const create =
    may('batch_export:write') && html`<${Button} kind="primary" href=${paths.newExport}>New export<//>`;
  return html`<${Page}
    title="Exports"
    subtitle=${overview.data && summaryOf(overview.data)}
    actions=${create}
  >
    <${Loaded} resource=${overview}>
      ${(data: Overview) =>
        data.count === 0
          ? html`<${EmptyState} title="No exports yet">
              <p>An export copies the rows of each interval to your bucket, hour after hour.</p>
              ${create || html`<p>Sign in with a key that has the scope batch_export:write to create one.</p>`}
            <//>`
          : html`<${ExportList} overview=${data} onMore=${() => (shown.value += pageSize)} />`}
    <//>
  <//>`;
}

const goToNewExport = () => {
  if (may('batch_export:write')) navigate(paths.newExport);
};

/** `12 exports, 2 need attention`. */
function summaryOf({ count, needing_attention: urgent }: Overview): string | undefined {
  if (count === 0) return undefined;
  const all = formatQuantity(count, 'export');
  return urgent === 0
    ? `${all}, none needs attention`
    : `${all}, ${urgent} ${urgent === 1 ? 'needs' : 'need'} attention`;
}

function ExportList({
  overview: { exports, found, incidents },
  onMore,
}: {
  readonly overview: Overview;
  readonly onMore: () => void;
}): View {
  const search = useRef<HTMLInputElement>(null);
  const focusSearch = useCallback(() => search.current?.focus(), []);
  useShortcut('/', 'Search exports', focusSearch);
  const text = currentQuery.value.get('search') ?? '';
  const more = Math.min(pageSize, found - exports.length);
  return html`<div class="export-list">
    <div class="export-list-tools">
      <input
        class="input"
        type="search"
        aria-label="Search exports"
        placeholder="Search by name, bucket or id"
        ref=${search}
        value=${text}
        onInput=${(event: InputEvent) => setQuery({ search: (event.currentTarget as HTMLInputElement).value })}
      />
      <${IntervalLegend}
        statuses=${['exported', 'running', 'unsettled', 'held', 'failed', 'gap', 'missing', 'due', 'paused']}
      />
    </div>
    ${
      incidents.length > 0 &&
      html`<div class="notice notice-danger" role="status">
        ${incidents.map(({ id, summary }) => html`<p key=${id}>${messageInWords(summary)}</p>`)}
      </div>`
    }
    ${
      found === 0
        ? html`<${EmptyState} title="No export matches “${text}”">
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
                ${exports.map((item) => html`<${ExportRow} key=${item.id} item=${item} isNamed=${incidents.some(({ id }) => id === item.condition.incident?.id)} />`)}
              </tbody>
            </table>
          </div>`
    }
    ${more > 0 && (exports.length < maxShown ? html`<${Button} onClick=${onMore}>Show ${more} more of ${found - exports.length}<//>` : html`<p class="muted">Search to find the other ${formatQuantity(found - exports.length, 'export')}.</p>`)}
  </div>`;
}
