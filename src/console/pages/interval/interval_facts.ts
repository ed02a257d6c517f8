import type { IntervalDetailResponse } from '../../../http/console/schema.ts';
import { Moment } from '../../components/moment.ts';
import { formatBytes } from '../../formatting/bytes.ts';
import { formatCount } from '../../formatting/count.ts';
import { formatDuration } from '../../formatting/duration.ts';
import { html, type Content, type View } from '../../html.ts';

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
  ];
  return html`<dl class="facts card">
    ${facts.map(
      ([name, value]) =>
        html`<div key=${name}>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

const secondsBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1_000;

const settledText = ({ settled, settling_outcome }: IntervalDetailResponse['interval']): string => {
  if (settled === true) return 'yes';
  return settling_outcome === null ? 'transactions are still open' : settling_outcome.replaceAll('_', ' ');
};
