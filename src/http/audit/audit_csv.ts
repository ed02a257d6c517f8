import { csvRow, withoutFormula } from '../../client/csv.ts';
import { type AuditEvent, formatChanges } from '../../journal/audit.ts';

const columns: Readonly<Record<string, (event: AuditEvent) => string | number | null | undefined>> = {
  time: ({ at }) => at,
  user: ({ user }) => user?.email,
  api_key: ({ key }) => key && `${key.name} ${key.prefix}…`.trim(),
  project: ({ project }) => project?.name,
  action: ({ action }) => action,
  object_name: ({ object_name }) => object_name,
  object: ({ object }) => object,
  changes: ({ changes }) => formatChanges(changes),
  outcome: ({ outcome }) => outcome,
  status: ({ status }) => status,
  detail: ({ detail }) => detail,
  address: ({ address }) => address,
  client: ({ client }) => client,
};

/** The audit trail as CSV, a page of events at a time. */
export async function* auditCsv(
  pages: AsyncIterable<readonly AuditEvent[]>,
): AsyncGenerator<string, void, undefined> {
  let lines = csvRow(Object.keys(columns));
  for await (const events of pages) {
    for (const event of events)
      lines += csvRow(Object.values(columns).map((valueOf) => withoutFormula(String(valueOf(event) ?? ''))));
    yield lines;
    lines = '';
  }
}
