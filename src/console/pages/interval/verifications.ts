import type { VerificationResponse, VerificationsResponse } from '../../../http/console/schema.ts';
import type { IntervalResponse } from '../../../http/intervals/schema.ts';
import { useEffect } from 'preact/hooks';
import { useResource } from '../../api/resource.ts';
import { ActionButton, type Action } from '../../components/action_button.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { StatusBadge } from '../../components/status_badge.ts';
import { formatBytes } from '../../formatting/bytes.ts';
import { formatCount, formatQuantity } from '../../formatting/count.ts';
import { html, type View } from '../../html.ts';

/** How often a verification that runs is read again: its progress is no event of the export. */
const pollMs = 1_500;

/** Compares every object of an interval with the source on request, and shows what earlier requests found. */
export function Verifications({
  exportId,
  interval: { data_interval_start: start, data_interval_end: end },
}: {
  readonly exportId: string;
  readonly interval: IntervalResponse;
}): View {
  const path = `console/batch_exports/${exportId}/intervals/${encodeURIComponent(start)}/verifications/`;
  const verifications = useResource<VerificationsResponse>(path);
  const { reload } = verifications;
  const isRunning = verifications.data?.results.some(({ status }) => status === 'pending') ?? false;
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = window.setInterval(() => void reload(), pollMs);
    return () => window.clearInterval(timer);
  }, [isRunning, reload]);
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
  return html`<div class="card proof">
    <div class="page-actions">
      <${ActionButton} action=${verify(false)} /><${ActionButton} action=${verify(true)} />
    </div>
    <${Loaded} resource=${verifications}>
      ${({ results }: VerificationsResponse) =>
        results.length === 0
          ? html`<p class="muted">
              Reads every file of the interval and compares its rows with the source. Nobody has requested it
              yet.
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
    ${status === 'failed' && html`<p class="tone-danger">${error}</p>`}
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
