import { useEffect, useRef } from 'preact/hooks';
import type { IntervalDetailResponse, NewestCheck } from '../../../http/intervals/detail_schema.ts';
import type { VerificationResponse, VerificationsResponse } from '../../../http/verifications/schema.ts';
import type { IntervalResponse } from '../../../http/intervals/schema.ts';
import { timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { type Action, ActionButton } from '../../components/actions.ts';
import { Moment, now } from '../../components/moment.ts';
import { messageInWords } from '../../components/in_words.ts';
import { Loaded, Section } from '../../components/page.ts';
import { StatusBadge, type StatusLook, StatusSign } from '../../components/statuses.ts';
import { Facts } from '../../components/table.ts';
import { formatBytes, formatCount, formatMoment, formatQuantity } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';

type FingerprintsData = NonNullable<IntervalDetailResponse['fingerprints']>;
type BucketPair = FingerprintsData['buckets'][number];

const width = 640;
const height = 48;
const gap = 1;

/** The rows of the source as bars over time, and below each whether the files have the same ones. */
function FingerprintBars({ buckets }: { readonly buckets: readonly BucketPair[] }): View {
  const max = Math.max(
    1,
    ...buckets.map(({ source_rows, bucket_rows }) => Math.max(source_rows, bucket_rows)),
  );
  const step = width / buckets.length;
  const equal = buckets.filter(({ is_equal }) => is_equal).length;
  const label = `${equal} of ${buckets.length} parts of the interval have equal rows`;
  return html`<svg
    class="fingerprint-bars"
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

const titleOf = ({ start, source_rows, bucket_rows, is_equal }: BucketPair): string =>
  `${formatMoment(start, timezone.value)}: ${formatCount(source_rows)} rows in the source, ${formatCount(bucket_rows)} in the files${is_equal ? ', equal' : ''}`;

/** Compares every object of an interval with the source on request, and shows what earlier requests found. */
function Verifications({
  exportId,
  interval: { data_interval_start: start, data_interval_end: end },
  onEnd,
}: {
  readonly exportId: string;
  readonly interval: IntervalResponse;
  /** Called when a verification has ended. */
  readonly onEnd: () => unknown;
}): View {
  const path = `batch_exports/${exportId}/intervals/${encodeURIComponent(start)}/verifications/`;
  const verifications = useResource<VerificationsResponse>(path, { polls: true });
  const { reload } = verifications;
  const isRunning = verifications.data?.results.some(({ status }) => status === 'pending') ?? false;
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isRunning) onEnd();
    wasRunning.current = isRunning;
  }, [isRunning]);
  const verify = (deep: boolean): Action => ({
    label: deep ? 'Verify every value' : 'Verify',
    method: 'POST',
    path,
    body: { deep },
    command: ['verify', exportId, '--from', start, '--to', end, ...(deep ? ['--deep'] : [])],
    done: 'A worker reads the files and compares them with the source.',
    onDone: reload,
    disabled: isRunning,
  });
  return html`<div class="card comparison">
    <div class="page-actions">
      <${ActionButton} action=${verify(false)} /><${ActionButton} action=${verify(true)} />
    </div>
    <${Loaded} resource=${verifications}>
      ${({ results }: VerificationsResponse) =>
        results.length === 0
          ? html`<p class="muted">
              Reads every file of the interval and compares its rows with the source. It has not been
              requested yet.
            </p>`
          : html`<ol class="history">
              ${results.map((verification) => html`<${VerificationItem} key=${verification.id} found=${verification} />`)}
            </ol>`}
    <//>
  </div>`;
}

function VerificationItem({ found }: { readonly found: VerificationResponse }): View {
  const { status, report, error, deep, created_at } = found;
  return html`<li>
    <div class="history-head">
      <${StatusBadge} status=${badgeOf(found)} />
      <span class="muted">${deep ? 'every value, ' : ''}<${Moment} at=${created_at} /></span>
    </div>
    ${status === 'failed' && html`<p class="tone-danger">${error !== null && messageInWords(error)}</p>`}
    ${report && html`<p class="figures">${reportOf(report)}</p>`}
    ${report && report.findings.length > 0 && html`<${Findings} findings=${report.findings} />`}
    ${report?.notes.map((note) => html`<p key=${note} class="muted">${note}</p>`)}
  </li>`;
}

type Report = NonNullable<VerificationResponse['report']>;

const badgeOf = ({ status, report }: VerificationResponse): string => {
  if (status !== 'completed') return status;
  return report?.ok === true ? 'verified' : 'findings';
};

/** `Compared 4,933 rows in 2 files (1.2 MB) with the source: no row is missing, duplicate or unexpected.` */
const reportOf = (report: Report): string =>
  `Compared ${formatQuantity(report.rows, 'row')} in ${formatQuantity(report.files, 'file')} (${formatBytes(report.bytes)}) with the source: ${summaryOf(report)}.`;

const summaryOf = ({ ok, missing, duplicate, unexpected, mismatched }: Report): string =>
  ok
    ? 'no row is missing, duplicate or unexpected'
    : [
        [missing, 'missing'] as const,
        [duplicate, 'duplicate'] as const,
        [unexpected, 'unexpected'] as const,
        [mismatched, 'mismatched'] as const,
      ]
        .map(([count, what]) => `${formatCount(count)} ${what}`)
        .join(', ');

function Findings({ findings }: { readonly findings: Report['findings'] }): View {
  return html`<ul class="findings">
    ${findings.map(
      ({ kind, detail, object, rows }, index) =>
        html`<li key=${index}>
          <p><strong>${kind.replaceAll('_', ' ')}</strong> ${detail}</p>
          ${object !== null && html`<p><code class="file-key">${object}</code></p>`}
          ${
            rows.length > 0 &&
            html`<p class="muted">
              ${rows.map(({ id, column }) => (column === undefined ? id : `${id} (${column})`)).join(', ')}
            </p>`
          }
        </li>`,
    )}
  </ul>`;
}

type Comparison = NonNullable<IntervalDetailResponse['interval']['comparison']>;

const equal: StatusLook = { label: 'Equal', tone: 'good', shape: 'full' };
const differs: StatusLook = { label: 'Differs', tone: 'danger', shape: 'cross' };

/** How the files compare with the source: fingerprints of both, later comparisons, and verification on request. */
export function ComparisonWithSource({
  exportId,
  detail,
  reload,
}: {
  readonly exportId: string;
  readonly detail: IntervalDetailResponse;
  readonly reload: () => unknown;
}): View {
  const { fingerprints, interval, newest_check, next_comparison_at } = detail;
  return html`<${Section} title="Comparison with the source">
    <div class="card comparison">
      ${newest_check && html`<${Verdict} check=${newest_check} />`}
      ${
        fingerprints
          ? html`<${Fingerprints} of=${fingerprints} />`
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
              : html`Compared next <${Moment} at=${next_comparison_at} />`
          }
        </p>`
      }
    </div>
    <${Verifications} exportId=${exportId} interval=${interval} onEnd=${reload} />
  <//>`;
}

/** What each kind of check has done. */
const checkedBy: Readonly<Record<string, string>> = {
  export: 'at the export',
  held_run: 'when a run was held',
  comparison: 'when compared',
  decision: 'as decided',
  verification: 'when verified',
};

/** Whether the files have the rows of the source, by what has compared them last. */
function Verdict({ check: { kind, at, is_equal, summary } }: { readonly check: NewestCheck }): View {
  const look = is_equal ? equal : differs;
  return html`<p>
    <span class="status-badge tone-${look.tone}"><${StatusSign} look=${look} />${summary}</span>
    ${' '}<span class="muted">${checkedBy[kind] ?? `by ${kind}`}, <${Moment} at=${at} exact /></span>
  </p>`;
}

/** What the source and the files had at the export. */
function Fingerprints({ of: { source, bucket, buckets } }: { readonly of: FingerprintsData }): View {
  const differing = buckets.filter((one) => !one.is_equal);
  return html`
    <${Facts}
      facts=${[
        ['At the export, in the source', totalOf(source)],
        ['At the export, in files and rejected rows', totalOf(bucket)],
        ['Hash of the row ids', html`<code>${source.hash}</code>`],
      ]}
    />
    ${buckets.length > 0 && html`<${FingerprintBars} buckets=${buckets} />`}
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

const totalOf = ({ rows, sum }: FingerprintsData['source']): View =>
  html`<span>${formatQuantity(rows, 'row')}<br /><code>${sum}</code></span>`;

function LastComparison({ comparison }: { readonly comparison: Comparison }): View {
  const { compared_at, outcome, source_rows, bucket_rows, added_rows, missing_rows } = comparison;
  const isEqual = outcome === 'equal';
  const look = isEqual ? equal : differs;
  // Persons that have changed are in a later interval.
  const equality = source_rows === bucket_rows ? 'Still equal' : 'Still complete';
  return html`<p>
    <span class="status-badge tone-${look.tone}"
      ><${StatusSign} look=${look} />${isEqual ? equality : outcome.replaceAll('_', ' ')}</span
    >
    ${' '}when compared <${Moment} at=${compared_at} />: ${formatCount(source_rows)} rows in the source,
    ${' '}${formatCount(bucket_rows)} in the
    bucket${
      isEqual ? '' : `, at least ${formatCount(added_rows)} added and ${formatCount(missing_rows)} missing`
    }.
  </p>`;
}
