import type { Generation, IntervalDetailResponse } from '../../../http/intervals/detail_schema.ts';
import { shellWord, timezone } from '../../api/client.ts';
import { CopyLine } from '../../components/actions.ts';
import { FieldChanges } from '../../components/in_words.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { Facts } from '../../components/table.ts';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatMoment,
  formatQuantity,
} from '../../formatting/format.ts';
import { type Content, html, type View } from '../../html.ts';

/** What is known of an interval's current manifest, in one line of facts. */
export function IntervalFacts({
  detail: { interval, generations },
}: {
  readonly detail: IntervalDetailResponse;
}): View {
  if (interval.manifest_run_id === null) return null;
  const first = generations.at(-1)?.run.finished_at ?? null;
  const facts: readonly (readonly [name: string, value: Content])[] = [
    ['Rows', formatCount(interval.rows)],
    ['Bytes', formatBytes(interval.bytes)],
    ['Files', formatCount(interval.files)],
    ['Generation', formatCount(interval.generation)],
    [
      'Landed',
      first === null
        ? '–'
        : `${formatDuration(secondsBetween(interval.data_interval_end, first))} after its end`,
    ],
    ['Published', html`<${Moment} at=${interval.completed_at} />`],
    ['Settled', settledText(interval)],
    ...(interval.rejected_rows ? [['Rejected rows', formatCount(interval.rejected_rows)] as const] : []),
    ...(interval.expires_at === null
      ? []
      : [['Expires', html`<${Moment} at=${interval.expires_at} />`] as const]),
    ...(interval.taken_keys > 0 ? [['Taken keys', formatCount(interval.taken_keys)] as const] : []),
    ...(interval.history_collapsed
      ? [['History', 'collapsed: runs and comparisons are no longer kept'] as const]
      : []),
  ];
  return html`<${Facts} look="card" facts=${facts} />`;
}

const secondsBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1_000;

const settledText = ({ settled, settling_outcome }: IntervalDetailResponse['interval']): string => {
  if (settled === true) return 'yes';
  return settling_outcome === null ? 'transactions are still open' : settling_outcome.replaceAll('_', ' ');
};

/** The current manifest: its key, how to read it from the bucket, and what it says. */
export function ManifestView({
  manifest: { bucket, endpoint, key, body },
}: {
  readonly manifest: NonNullable<IntervalDetailResponse['manifest']>;
}): View {
  const url = `s3://${bucket}/${key}`;
  const server = endpoint === null ? '' : `--endpoint-url ${shellWord(endpoint)} `;
  return html`<${Section} title="Manifest">
    <div class="card manifest">
      <${CopyLine} label="manifest URL" text=${url} />
      <${CopyLine}
        label="command that prints the manifest"
        text=${`aws ${server}s3 cp ${shellWord(url)} -`}
      />
      <details>
        <summary>As the journal recorded it</summary>
        <pre class="code" tabindex="0">${JSON.stringify(body, null, 2)}</pre>
      </details>
    </div>
  <//>`;
}

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
