import { useSignal } from '@preact/signals';
import type { SettingsChange } from '../../../http/console/schema.ts';
import type { ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { timezone } from '../../api/session.ts';
import { Button } from '../../components/button.ts';
import { FieldChanges } from '../../components/field_changes.ts';
import { Loaded } from '../../components/loaded.ts';
import { Moment } from '../../components/moment.ts';
import { Section } from '../../components/page.ts';
import { formatMoment } from '../../formatting/moment.ts';
import { html, type View } from '../../html.ts';

const pageSize = 20;

/** Who changed an export, when, and each field before and after, newest first. */
export function SettingsHistory({ exportId }: { readonly exportId: string }): View {
  const shown = useSignal(pageSize);
  const history = useResource<ListOf<SettingsChange>>(`console/batch_exports/${exportId}/history/`, {
    query: { limit: shown.value },
    live: exportId,
  });
  const showMore = () => {
    shown.value += pageSize;
  };
  return html`<${Section} title="History">
    <${Loaded} resource=${history}>
      ${(page: ListOf<SettingsChange>) =>
        html`<ol class="history card">
            ${page.results.map(
              (change) =>
                html`<li key=${`${change.at} ${change.summary}`}>
                  <div class="history-head">
                    <strong>${withLocalTimes(change.summary)}</strong>
                    <span class="muted">${authorOf(change)} <${Moment} at=${change.at} /></span>
                  </div>
                  <${FieldChanges} changes=${change.changes} />
                </li>`,
            )}
          </ol>
          ${page.next !== null && html`<div><${Button} onClick=${showMore}>Older changes<//></div>`}`}
    <//>
  <//>`;
}

/** Replaces the times of a summary, which are in UTC, by those of the project's clocks. */
const withLocalTimes = (summary: string): string =>
  summary.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) =>
    formatMoment(time, timezone.value, { seconds: false }),
  );

function authorOf({ by }: SettingsChange): string {
  switch (by.type) {
    case 'user':
      return `by ${by.first_name === '' ? by.email : `${by.first_name} (${by.email})`}`;
    case 'signal':
      return 'by a signal from Temporal';
    case 'exportd':
      return 'by exportd';
  }
}
