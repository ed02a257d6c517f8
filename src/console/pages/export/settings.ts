import type { BatchExportResponse } from '../../../http/batch_exports/schema.ts';
import { may } from '../../api/client.ts';
import { DestinationTest } from '../../components/destination_test.ts';
import { Section } from '../../components/page.ts';
import { Facts } from '../../components/table.ts';
import { withLocalTimes } from '../../formatting/format.ts';
import { html, type View } from '../../html.ts';
import { paths } from '../../router/paths.ts';
import { labelOf, valueInWords } from '../edit/form_fields.ts';
import type { PartProps } from './export_actions.ts';

/** The settings of an export, and a test of its destination. */
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
    ${
      may('audit:read') &&
      html`<p>
        <a href="${paths.audit}?object=batch_exports/${found.id}">Who has changed the export, and what</a>
      </p>`
    }
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
