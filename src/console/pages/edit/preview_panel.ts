import type { PreviewResponse } from '../../../http/console/schema.ts';
import { timezone } from '../../api/session.ts';
import { Table, type Column } from '../../components/table.ts';
import { formatInterval, formatMoment } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import type { Preview } from './use_preview.ts';

/** The keys that the newest interval would have, and the first rows. */
export function PreviewPanel({ preview }: { readonly preview: Preview }): View {
  const { data, failure, isLoading } = preview;
  return html`<section class="card edit-panel" aria-busy=${isLoading ? 'true' : undefined}>
    <h2>Preview</h2>
    ${!data && !failure && html`<p class="muted">Reading the first rows…</p>`}
    ${failure && html`<p class="field-error" role="status">${failure.message.split('\n')[0]}</p>`}
    ${data && html`<${Keys} data=${data} /><${FirstRows} data=${data} />`}
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

function FirstRows({ data }: { readonly data: PreviewResponse }): View {
  const { columns, rows, rows_since } = data;
  const since = formatMoment(rows_since, timezone.value, { seconds: false });
  if (rows.length === 0)
    return html`<p class="muted">
      No row since ${since}. Check the filters, and that rows have the project's team_id.
    </p>`;
  const shown = columns.map(({ name }, index): Column<Row> => ({
    header: name,
    render: ([, values]) => textOf(values[index]),
  }));
  return html`<div class="preview-rows" tabindex="0" role="region" aria-label="First rows">
    <p class="muted">The first ${rows.length} rows since ${since}</p>
    <${Table}
      caption="First rows"
      columns=${shown}
      rows=${rows.map((values, index): Row => [index, values])}
      rowKey=${([number]: Row) => String(number)}
    />
  </div>`;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '–';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}
