import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { may } from '../../api/session.ts';
import { DestinationTest } from '../../components/destination_test.ts';
import { Section } from '../../components/page.ts';
import { html, type View } from '../../html.ts';
import type { PartProps } from './part_props.ts';
import { SettingsHistory } from './settings_history.ts';

/** The settings of an export, a test of its destination, and who changed what. */
export function Settings({ found }: PartProps): View {
  return html`
    <${Section} title="Settings">
      <dl class="facts card wide-facts">
        ${settingsOf(found).map(
          ([name, value]) =>
            html`<div key=${name}>
              <dt>${name}</dt>
              <dd>${formatValue(value)}</dd>
            </div>`,
        )}
      </dl>
      ${found.dialect_query !== null && html`<pre class="card code">${found.dialect_query}</pre>`}
    <//>
    ${
      may('batch_export:write') &&
      html`<${Section} title="Destination">
        <div class="card">
          <${DestinationTest}
            path=${`batch_exports/${found.id}/test/`}
            command=${['destination', 'test', found.id]}
          />
        </div>
      <//>`
    }
    <${SettingsHistory} exportId=${found.id} />
  `;
}

/** The settings that have a value, by the names of the API. */
function settingsOf(found: BatchExportResponse): (readonly [name: string, value: unknown])[] {
  const { name, model, interval, timezone, offset_hour, offset_day, start_at, end_at, retention_days } =
    found;
  const own = { name, model, interval, timezone, offset_hour, offset_day, start_at, end_at, retention_days };
  const { type, config } = found.destination;
  return Object.entries({ ...own, destination: type, ...config }).filter(
    ([, value]) => value !== null && value !== '' && !isEmptyList(value),
  );
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const formatValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
