import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { EstimateResponse, PreviewResponse } from '../../../http/previews/schema.ts';
import type { SourceReportResponse } from '../../../http/source/schema.ts';
import { api, type ExportdError, may, timezone, toFailure } from '../../api/client.ts';
import { useRequest, useResource } from '../../api/resource.ts';
import { Button, CopyBlock } from '../../components/actions.ts';
import { FailureNotice } from '../../components/page.ts';
import { type StatusLook, StatusSign } from '../../components/statuses.ts';
import { type Column, Facts, Table } from '../../components/table.ts';
import { formatBytes, formatCount, formatInterval, formatMoment } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';

const looks = {
  ok: { label: 'Ready', tone: 'good', shape: 'full' },
  error: { label: 'Error', tone: 'danger', shape: 'cross' },
  warning: { label: 'Warning', tone: 'attention', shape: 'cutCorner' },
} as const satisfies Record<string, StatusLook>;

/** Whether the source has what exports of the model need, and the SQL that fixes what it lacks. */
export function SourceCheck({
  model,
  onCheck,
}: {
  readonly model: string;
  /** The source was checked again on request. */
  readonly onCheck: () => void;
}): View {
  const { data, failure, isLoading, reload } = useResource<SourceReportResponse>('source/check/', {
    query: { model: model === '' ? 'events' : model },
  });
  return html`<section class="card edit-panel" aria-busy=${isLoading ? 'true' : undefined}>
    <h2>Source</h2>
    ${!data && !failure && html`<p class="muted">Checking the source…</p>`}
    ${failure && html`<${FailureNotice} failure=${failure} onRetry=${reload} />`}
    ${
      data &&
      html`<ul class="source-findings">
          ${
            data.ok &&
            html`<li>
              <${StatusSign} look=${looks.ok} />
              <p>Exports can read <code>${data.relations[0]?.relation}</code>.</p>
            </li>`
          }
          ${data.findings.map(
            (finding, index) =>
              html`<li key=${index}>
                <${StatusSign} look=${looks[finding.level]} />
                <div>
                  <p>
                    <strong>${looks[finding.level].label}</strong>
                    <code>${finding.subject}${finding.column === null ? '' : `.${finding.column}`}</code>
                  </p>
                  <p>${finding.message}</p>
                  ${finding.sql !== null && html`<${CopyBlock} label="SQL" text=${finding.sql} />`}
                </div>
              </li>`,
          )}
        </ul>
        ${data.views.map((view) => html`<${DraftedView} key=${view.name} view=${view} />`)}
        ${may('source:read') && html`<p><a href=${paths.source}>Map a table to events</a></p>`}
        ${data.findings.length > 0 && html`<div><${Button} onClick=${() => void reload().then(onCheck)}>Check again<//></div>`}`
    }
  </section>`;
}

/** A view to create in the source. */
function DraftedView({ view }: { readonly view: SourceReportResponse['views'][number] }): View {
  const { name, setting, sql, to_choose } = view;
  return html`<div>
    <p>
      Or create this view in your database, start exportd with <code>${setting}=${name}</code>, and check
      again:
    </p>
    ${to_choose.length > 0 && html`<p><strong>Fill in first: ${to_choose.join(', ')}.</strong></p>`}
    <${CopyBlock} label="SQL of the view" text=${sql} />
  </div>`;
}

/** What an export would write, and why that is not known. */
interface Preview {
  readonly data: PreviewResponse | undefined;
  readonly failure: ExportdError | undefined;
  readonly isLoading: boolean;
}

/** The pause in typing after which the preview is read again. */
const pauseMs = 700;

/** The path of an operation on a new or an existing export that only the console needs. */
const consolePath = (id: string | null, operation: 'preview' | 'estimate'): string =>
  `batch_exports/${id === null ? '' : `${id}/`}${operation}/`;

/**
 * Reads the preview of a body again after each pause in typing, and when the source was checked again (`sourceChecks`).
 * What was read before stays until then.
 */
export function usePreview(
  id: string | null,
  body: Readonly<Record<string, unknown>>,
  sourceChecks: number,
): Preview {
  const state = useSignal<Preview>({ data: undefined, failure: undefined, isLoading: true });
  const text = JSON.stringify(body);
  useEffect(() => {
    const stop = new AbortController();
    state.value = { ...state.peek(), isLoading: true };
    const timer = window.setTimeout(() => {
      api
        .post<PreviewResponse>(consolePath(id, 'preview'), JSON.parse(text), stop.signal)
        .then((data) => {
          state.value = { data, failure: undefined, isLoading: false };
        })
        .catch((error: unknown) => {
          if (!stop.signal.aborted)
            state.value = { ...state.peek(), failure: toFailure(error), isLoading: false };
        });
    }, pauseMs);
    return () => {
      window.clearTimeout(timer);
      stop.abort();
    };
  }, [id, text, sourceChecks]);
  return state.value;
}

/** The keys that the newest interval would have. */
export function PreviewPanel({ preview }: { readonly preview: Preview }): View {
  const { data, failure, isLoading } = preview;
  return html`<section class="card edit-panel" aria-busy=${isLoading ? 'true' : undefined}>
    <h2>Preview</h2>
    ${!data && !failure && html`<p class="muted">Reading the first rows…</p>`}
    ${failure && html`<p class="field-error" role="status">${failure.message.split('\n')[0]}</p>`}
    ${data && html`<${Keys} data=${data} />`}
  </section>`;
}

function Keys({ data }: { readonly data: PreviewResponse }): View {
  const { interval, file, manifest } = data;
  return html`<p class="muted">Interval ${formatInterval(interval.start, interval.end, timezone.value)}</p>
    <dl class="preview-keys">
      <div>
        <dt>First file</dt>
        <dd><code>${file}</code></dd>
      </div>
      <div>
        <dt>Manifest</dt>
        <dd><code>${manifest}</code></dd>
      </div>
    </dl>`;
}

type Row = readonly [number: number, values: readonly unknown[]];

const maxShown = 80;

/** The first rows that the export would write, with all their columns. */
export function FirstRows({ preview: { data } }: { readonly preview: Preview }): View {
  if (!data) return null;
  const { columns, rows, rows_since } = data;
  const since = formatMoment(rows_since, timezone.value, { seconds: false });
  if (rows.length === 0)
    return html`<section class="card edit-rows">
      <h2>First rows</h2>
      <p class="muted">No row since ${since}. Check the filters, and that rows have the project's team_id.</p>
    </section>`;
  const shown = columns.map(({ name }, index): Column<Row> => ({
    header: name,
    render: ([, values]) => textOf(values[index]),
  }));
  return html`<section class="card edit-rows">
    <h2>First rows</h2>
    <p class="muted">The first ${rows.length} since ${since}</p>
    <div class="preview-rows" tabindex="0" role="region" aria-label="First rows">
      <${Table}
        caption="First rows"
        columns=${shown}
        rows=${rows.map((values, index): Row => [index, values])}
        rowKey=${([number]: Row) => String(number)}
      />
    </div>
  </section>`;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '–';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

/** How many rows, bytes and files an interval would have. Counting can take long, so it waits to be asked. */
export function EstimatePanel({
  id,
  body,
}: {
  readonly id: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}): View {
  const text = JSON.stringify(body);
  const { isBusy, failure, ...sent } = useRequest(async () => ({
    of: text,
    data: await api.post<EstimateResponse>(consolePath(id, 'estimate'), body),
  }));
  const data = sent.data?.of === text ? sent.data.data : undefined;
  return html`<section class="card edit-panel">
    <h2>Size of an interval</h2>
    <div aria-live="polite">
      ${failure && html`<p class="field-error">${failure.message.split('\n')[0]}</p>`}
      ${data && html`<${Estimate} data=${data} />`}
      ${!data && !failure && html`<p class="muted">Counts the rows of the last day and encodes some of them.</p>`}
    </div>
    <div><${Button} busy=${isBusy} onClick=${() => void sent.run()}>Estimate<//></div>
  </section>`;
}

function Estimate({ data }: { readonly data: EstimateResponse }): View {
  if (data.rows === null) return html`<p class="muted">${data.detail}</p>`;
  const { intervals, rows } = data;
  const counted = intervals === 1 ? 'The interval' : `The average of ${formatCount(intervals)} intervals,`;
  const range = formatInterval(data.start, data.end, timezone.value);
  const facts = [
    ['Rows', formatCount(data.rows_per_interval)],
    ['Bytes, about', formatBytes(data.bytes_per_interval)],
    ['Files', formatCount(data.files_per_interval)],
  ];
  return html`<${Facts} facts=${facts} />
    <p class="muted">${`${counted} ${range}, with ${formatCount(rows)} rows.`}</p>`;
}
