import { useSignal } from '@preact/signals';
import type { SourceReportResponse } from '../../../http/console/schema.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/button.ts';
import { CopyBlock } from '../../components/copy_line.ts';
import { SelectField } from '../../components/field.ts';
import { FailureNotice } from '../../components/failure_notice.ts';
import { StatusSign } from '../../components/status_badge.ts';
import type { StatusLook } from '../../components/statuses.ts';
import { html, type View } from '../../html.ts';

const looks = {
  ok: { label: 'Ready', tone: 'good', shape: 'full' },
  error: { label: 'Error', tone: 'danger', shape: 'cross' },
  warning: { label: 'Warning', tone: 'attention', shape: 'cutCorner' },
} as const satisfies Record<string, StatusLook>;

const path = 'console/source/check/';

/** Whether the source has what exports of the model need, and the SQL that fixes what it lacks. */
export function SourceCheck({
  model,
  onCheck,
}: {
  readonly model: string;
  /** The source was checked again on request. */
  readonly onCheck: () => void;
}): View {
  const table = useSignal('');
  const query = { model: model === '' ? 'events' : model };
  const { data, failure, isLoading, reload } = useResource<SourceReportResponse>(path, { query });
  const drafted = useResource<SourceReportResponse>(table.value === '' ? null : path, {
    query: { ...query, table: table.value },
  });
  const views = data?.tables.includes(table.value) === true ? drafted.data?.views : data?.views;
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
        ${
          data.tables.length > 0 &&
          html`<${SelectField}
            label="Table of your events"
            hint="The tables of the source that have a column of a time."
            value=${table.value}
            options=${['', ...data.tables].map((value) => ({ value, label: value === '' ? 'Choose…' : value }))}
            onChange=${(value: string) => {
              table.value = value;
            }}
          />`
        }
        ${views?.map((view) => html`<${DraftedView} key=${view.name} view=${view} isRead=${data.tables.length > 0} />`)}
        ${data.findings.length > 0 && html`<div><${Button} onClick=${() => void reload().then(onCheck)}>Check again<//></div>`}`
    }
  </section>`;
}

/** A view to create in the source. `isRead`: exportd reads a view of its name, so that no setting has to change. */
function DraftedView({
  view,
  isRead,
}: {
  readonly view: SourceReportResponse['views'][number];
  readonly isRead: boolean;
}): View {
  const { name, setting, sql, to_choose } = view;
  return html`<div>
    <p>
      ${
        isRead
          ? html`Create this view in your database, then check again:`
          : html`Or create this view in your database, start exportd with <code>${setting}=${name}</code>, and
              check again:`
      }
    </p>
    ${to_choose.length > 0 && html`<p><strong>Fill in first: ${to_choose.join(', ')}.</strong></p>`}
    <${CopyBlock} label="SQL of the view" text=${sql} />
  </div>`;
}
