import type { SourceReportResponse } from '../../../http/schemas/console/preview.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/button.ts';
import { FailureNotice } from '../../components/failure_notice.ts';
import { StatusSign } from '../../components/status_badge.ts';
import type { StatusLook } from '../../components/statuses.ts';
import { html, type View } from '../../html.ts';

const looks = {
  ok: { label: 'Ready', tone: 'good', shape: 'full' },
  error: { label: 'Error', tone: 'danger', shape: 'cross' },
  warning: { label: 'Warning', tone: 'attention', shape: 'cutCorner' },
} as const satisfies Record<string, StatusLook>;

/** Whether the source has what exports of the model need, and the SQL that fixes what it lacks. */
export function SourceCheck({ model }: { readonly model: string }): View {
  const { data, failure, isLoading, reload } = useResource<SourceReportResponse>('console/source/check/', {
    query: { model: model === '' ? 'events' : model },
  });
  return html`<section class="card edit-panel" aria-busy=${isLoading ? 'true' : undefined}>
    <h2>Source</h2>
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
                  ${finding.sql !== null && html`<pre class="source-sql" tabindex="0">${finding.sql}</pre>`}
                </div>
              </li>`,
          )}
        </ul>
        ${data.views.map(
          (view) =>
            html`<div key=${view.name}>
              <p>Or create this view and set <code>${view.setting}=${view.name}</code>:</p>
              <pre class="source-sql" tabindex="0">${view.sql}</pre>
              ${view.to_choose.length > 0 && html`<p class="muted">Fill in: ${view.to_choose.join(', ')}.</p>`}
            </div>`,
        )}
        ${data.findings.length > 0 && html`<div><${Button} onClick=${() => void reload()}>Check again<//></div>`}`
    }
  </section>`;
}
