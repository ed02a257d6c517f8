import type { IntervalDetailResponse } from '../../../http/console/schema.ts';
import { timezone } from '../../api/session.ts';
import { now } from '../../clock.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { StatusSign } from '../../components/status_badge.ts';
import type { StatusLook } from '../../components/statuses.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { formatMoment } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';
import { ProofBars } from './proof_bars.ts';
import { Verifications } from './verifications.ts';

type ProofData = NonNullable<IntervalDetailResponse['proof']>;
type Comparison = NonNullable<IntervalDetailResponse['interval']['comparison']>;

const equal: StatusLook = { label: 'Equal', tone: 'good', shape: 'full' };
const differs: StatusLook = { label: 'Differs', tone: 'danger', shape: 'cross' };

/** Why the files have every row of the source: fingerprints of both, later comparisons, and verification on request. */
export function Proof({
  exportId,
  detail,
}: {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
}): View {
  const { proof, interval, next_comparison_at } = detail;
  return html`<${Section} title="Proof">
    <div class="card proof">
      ${
        proof
          ? html`<${Fingerprints} proof=${proof} />`
          : html`<p class="muted">
              Persons decide which rows are selected, so fingerprints are not compared.
            </p>`
      }
      ${
        interval.comparison
          ? html`<${LastComparison} comparison=${interval.comparison} />`
          : html`<p class="muted">The interval was not compared with the source again yet.</p>`
      }
      ${
        next_comparison_at !== null &&
        html`<p class="muted">
          ${
            Date.parse(next_comparison_at) <= now.value
              ? 'The next comparison is due.'
              : html`Compared next <${Moment} at=${next_comparison_at} />.`
          }
        </p>`
      }
    </div>
    <${Verifications} exportId=${exportId} interval=${interval} />
  <//>`;
}

function Fingerprints({ proof }: { readonly proof: ProofData }): View {
  const { source, bucket, is_equal, buckets } = proof;
  const look = is_equal ? equal : differs;
  const differing = buckets.filter((one) => !one.is_equal);
  return html`
    <p class="status-badge tone-${look.tone}">
      <${StatusSign} look=${look} />${
        is_equal ? 'The files have the rows of the source' : 'The files and the source differ'
      }
    </p>
    <dl class="facts">
      <div>
        <dt>Source, after the export</dt>
        <dd>${formatQuantity(source.rows, 'row')}<br /><code>${source.sum}</code></dd>
      </div>
      <div>
        <dt>Files and rejected rows</dt>
        <dd>${formatQuantity(bucket.rows, 'row')}<br /><code>${bucket.sum}</code></dd>
      </div>
      <div>
        <dt>Hash of the row ids</dt>
        <dd><code>${source.hash}</code></dd>
      </div>
    </dl>
    ${buckets.length > 0 && html`<${ProofBars} buckets=${buckets} />`}
    ${
      differing.length > 0 &&
      html`<ul class="figures">
        ${differing.map(
          ({ start, end, source_rows, bucket_rows }) =>
            html`<li key=${start}>
              ${formatMoment(start, timezone.value)} – ${formatMoment(end, timezone.value).slice(11)}:
              ${' '}${formatCount(source_rows)} in the source, ${formatCount(bucket_rows)} in the bucket
            </li>`,
        )}
      </ul>`
    }
  `;
}

function LastComparison({ comparison }: { readonly comparison: Comparison }): View {
  const { compared_at, outcome, source_rows, bucket_rows, added_rows, missing_rows } = comparison;
  const isEqual = outcome === 'equal';
  const look = isEqual ? equal : differs;
  return html`<p>
    <span class="status-badge tone-${look.tone}"
      ><${StatusSign} look=${look} />${isEqual ? 'Still equal' : outcome.replaceAll('_', ' ')}</span
    >
    ${' '}when compared <${Moment} at=${compared_at} />: ${formatCount(source_rows)} rows in the source,
    ${' '}${formatCount(bucket_rows)} in the
    bucket${
      isEqual ? '' : `, at least ${formatCount(added_rows)} added and ${formatCount(missing_rows)} missing`
    }.
  </p>`;
}
