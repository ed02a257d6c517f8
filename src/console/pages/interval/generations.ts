import type { Generation } from '../../../http/console/schema.ts';
import { timezone } from '../../api/session.ts';
import { FieldChanges } from '../../components/field_changes.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { formatBytes } from '../../formatting/bytes.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { formatMoment } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';

/** The generations that the API lists. */
const maxListed = 20;
/** The times of differing rows that are listed. */
const listedBuckets = 8;

/** How often an interval was exported, newest first, and what differs from one time to the next. */
export function Generations({ generations }: { readonly generations: readonly Generation[] }): View {
  return html`<${Section} title="Generations">
    <ol class="generations card">
      ${generations.map(
        (generation) => html`<${GenerationItem} key=${generation.run.id} generation=${generation} />`,
      )}
    </ol>
    ${generations.length >= maxListed && html`<p class="muted">The newest ${maxListed} are shown.</p>`}
  <//>`;
}

function GenerationItem({ generation }: { readonly generation: Generation }): View {
  const { difference, run } = generation;
  return html`<li>
    <div class="history-head">
      <span>
        <strong>Generation ${generation.generation}</strong>${
          generation.is_current && html` <span class="generation-current">current</span>`
        }
      </span>
      <span class="muted">${originOf(generation)}, published <${Moment} at=${run.finished_at} /></span>
    </div>
    <p class="figures">${totalsOf(generation)}</p>
    ${difference && html`<${Difference} difference=${difference} />`}
  </li>`;
}

/** `4,933 rows, 1.2 MB, 1 file`. */
const totalsOf = ({ rows, bytes, files, rejected_rows }: Generation): string =>
  [
    formatQuantity(rows, 'row'),
    formatBytes(bytes),
    formatQuantity(files, 'file'),
    ...(rejected_rows > 0 ? [`${formatCount(rejected_rows)} rejected`] : []),
  ].join(', ');

function Difference({
  difference: { rows, bytes, files, buckets, fields },
}: {
  readonly difference: NonNullable<Generation['difference']>;
}): View {
  const totals = [
    signed(rows, 'row'),
    `${bytes < 0 ? '−' : '+'}${formatBytes(Math.abs(bytes))}`,
    ...(files === 0 ? [] : [signed(files, 'file')]),
  ].join(', ');
  return html`<div class="difference">
    <p class="muted figures">Against the generation before: ${totals}. ${rowsText(buckets)}</p>
    ${
      buckets !== null &&
      buckets.length > 0 &&
      html`<ul class="figures">
        ${buckets
          .slice(0, listedBuckets)
          .map(
            ({ start, end, before, after }) =>
              html`<li key=${start}>
                ${timeOf(start)} – ${timeOf(end)}: ${formatCount(before)} → ${formatCount(after)} rows
                ${before === after && html`<span class="muted"> (other rows)</span>`}
              </li>`,
          )}
        ${buckets.length > listedBuckets && html`<li class="muted">and ${buckets.length - listedBuckets} more</li>`}
      </ul>`
    }
    <${FieldChanges} changes=${fields} />
  </div>`;
}

const rowsText = (buckets: NonNullable<Generation['difference']>['buckets']): string => {
  if (buckets === null) return 'The models differ, so their rows are not compared.';
  return buckets.length === 0
    ? 'Both have the same rows.'
    : 'By the time that the source received them, these rows differ:';
};

const originOf = ({ run }: Generation): string => {
  const origin = run.backfill_id === null ? 'by the schedule' : 'by a backfill or retry';
  return run.allow_shrink ? `${origin}, which could remove rows` : origin;
};

const signed = (count: number, unit: string): string =>
  `${count < 0 ? '−' : '+'}${formatQuantity(Math.abs(count), unit)}`;

const timeOf = (time: string): string => formatMoment(time, timezone.value).slice(11);
