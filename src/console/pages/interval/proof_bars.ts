import type { IntervalDetailResponse } from '../../../http/console/schema.ts';
import { timezone } from '../../api/session.ts';
import { formatCount } from '../../formatting/count.ts';
import { formatMoment } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';

type ProofBucket = NonNullable<IntervalDetailResponse['proof']>['buckets'][number];

const width = 640;
const height = 48;
const gap = 1;

/** The rows of the source as bars over time, and below each whether the files have the same ones. */
export function ProofBars({ buckets }: { readonly buckets: readonly ProofBucket[] }): View {
  const max = Math.max(
    1,
    ...buckets.map(({ source_rows, bucket_rows }) => Math.max(source_rows, bucket_rows)),
  );
  const step = width / buckets.length;
  const equal = buckets.filter(({ is_equal }) => is_equal).length;
  const label = `${equal} of ${buckets.length} parts of the interval have equal rows`;
  return html`<svg
    class="proof-bars"
    role="img"
    aria-label=${label}
    viewBox="0 0 ${width} ${height + 8}"
    preserveAspectRatio="none"
  >
    ${buckets.map((bucket, index) => {
      const size = Math.max(1, (bucket.source_rows / max) * height);
      const x = index * step;
      return html`<g key=${bucket.start} class=${bucket.is_equal ? 'tone-good' : 'tone-danger'}>
        <title>${titleOf(bucket)}</title>
        <rect x=${x} y=${height - size} width=${Math.max(1, step - gap)} height=${size} />
        ${!bucket.is_equal && html`<rect x=${x} y=${height + 2} width=${Math.max(1, step - gap)} height="6" />`}
      </g>`;
    })}
  </svg>`;
}

const titleOf = ({ start, source_rows, bucket_rows, is_equal }: ProofBucket): string =>
  `${formatMoment(start, timezone.value)}: ${formatCount(source_rows)} rows in the source, ${formatCount(bucket_rows)} in the files${is_equal ? ', equal' : ''}`;
