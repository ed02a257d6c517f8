import { useSignal } from '@preact/signals';
import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import type { SettingsChange } from '../../../http/console/schema.ts';
import { type ListOf, may, timezone } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { Button } from '../../components/actions.ts';
import { DestinationTest } from '../../components/destination_test.ts';
import { FieldChanges } from '../../components/in_words.ts';
import { Moment } from '../../components/moment.ts';
import { Loaded, Section } from '../../components/page.ts';
import { Facts } from '../../components/table.ts';
import { withLocalTimes } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { labelOf, valueInWords } from '../edit/form_fields.ts';
import type { PartProps } from './export_actions.ts';

const pageSize = 20;

/** Who changed an export, when, and each field before and after, newest first. */
function SettingsHistory({ exportId }: { readonly exportId: string }): View {
  const shown = useSignal(pageSize);
  const history = useResource<ListOf<SettingsChange>>(`batch_exports/${exportId}/history/`, {
    query: { limit: shown.value },
    polls: true,
  });
  const showMore = () => (shown.value += pageSize);
  return html`<${Section} title="History">
    <${Loaded} resource=${history}>
      ${(page: ListOf<SettingsChange>) =>
        html`<ol class="history card">
            ${page.results.map(
              (change) =>
                html`<li key=${`${change.at} ${change.summary}`}>
                  <div class="history-head">
                    <strong>${withLocalTimes(change.summary, timezone.value)}</strong>
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

function authorOf({ by }: SettingsChange): string {
  switch (by.type) {
    case 'user':
      return `by ${by.first_name === '' ? by.email : `${by.first_name} (${by.email})`}`;
    case 'signal':
      return `by a signal from Temporal${by.identity === null ? '' : ` (${by.identity})`}`;
    case 'exportd':
      return 'by exportd';
  }
}

/** The settings of an export, a test of its destination, and who changed what. */
export function Settings({ found }: PartProps): View {
  return html`
    <${Section} title="Settings">
      <${Facts} look="card wide-facts" facts=${settingsOf(found)} />
      ${found.dialect_query !== null && html`<pre class="card code">${found.dialect_query}</pre>`}
    <//>
    ${
      may('batch_export:write') &&
      html`<${Section} title="Destination">
        <div class="card">
          <${DestinationTest} exportId=${found.id} />
        </div>
      <//>`
    }
    <${SettingsHistory} exportId=${found.id} />
  `;
}

/** The settings that have a value, by the labels of the form. */
function settingsOf(found: BatchExportResponse): (readonly [name: string, value: string])[] {
  const { name, model, interval, timezone, offset_hour, offset_day, start_at, end_at, retention_days } =
    found;
  const own = { name, model, interval, timezone, offset_hour, offset_day, start_at, end_at, retention_days };
  const { type, config, access_key_id_end: end } = found.destination;
  const shown = {
    ...own,
    destination__type: type,
    ...config,
    ...(end !== null && { aws_access_key_id: `…${end}` }),
  };
  return Object.entries(shown)
    .filter(([, value]) => value !== null && value !== '' && !isEmptyList(value))
    .map(([setting, value]) => [
      labelOf(setting),
      withLocalTimes(valueInWords(setting, value), found.timezone),
    ]);
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
