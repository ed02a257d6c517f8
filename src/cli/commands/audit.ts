import type { Command } from 'commander';
import type { AuditEvent } from '../../client/client.ts';
import { readAuditEvents } from '../../journal/audit.ts';
import { parseId } from '../arguments.ts';
import { printList, table } from '../output.ts';
import { withPool } from '../running_stack.ts';
import { given, openService, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';
import { usesService } from './accounts.ts';

interface AuditOptions extends ServiceCommandOptions {
  readonly database?: boolean;
  readonly user?: number;
  readonly ofKey?: string;
  readonly action?: string;
  readonly object?: string;
  readonly since?: string;
  readonly limit: number;
}

/** What both the service and the database say of an event. */
type PrintedEvent = Pick<
  AuditEvent,
  'at' | 'user' | 'key' | 'address' | 'action' | 'object' | 'outcome' | 'status' | 'client'
> & { readonly changes: readonly AuditEvent['changes'][number][] };

/** `audit`. */
export function addAuditCommand(program: Command): void {
  serviceCommand(
    program,
    'audit',
    'list who changed what, newest first: of a project with the HTTP API, of all with the database',
  )
    .option('--database', 'use the control database, also if there is EXPORTD_API_KEY')
    .option('--user <id>', 'only of this user', parseId)
    .option('--of-key <id>', 'only of this API key')
    .option('--action <names>', 'only these actions, separated by commas, such as batch_export.delete')
    .option('--object <path>', 'only of this object and its parts, such as batch_exports/<id>')
    .option('--since <time>', 'only from this ISO 8601 time on')
    .option('--limit <number>', 'number of events', parseId, 50)
    .action(async (options: AuditOptions) => {
      const events = usesService(options) ? await readFromService(options) : await readFromDatabase(options);
      printList(options)(events, auditTable);
    });
}

async function readFromService(options: AuditOptions): Promise<readonly PrintedEvent[]> {
  const { user, ofKey: key, action, object, since, limit } = options;
  const query = given({ user, key, action, object, since, limit });
  return (await openService(options).get('/audit', { query })).results;
}

async function readFromDatabase(options: AuditOptions): Promise<readonly PrintedEvent[]> {
  const { project: team_id, user, ofKey: key, object, since, limit } = options;
  const filter = { team_id, user, key, actions: options.action?.split(','), object, since };
  return withPool(async (pool) => (await readAuditEvents(pool, filter, { limit, offset: 0 })).results);
}

const auditTable = (events: readonly PrintedEvent[]): string[] =>
  table(
    ['at', 'user', 'key', 'address', 'action', 'object', 'changes', 'outcome', 'status', 'client'],
    events.map((event) => [
      event.at,
      event.user?.email,
      event.key?.prefix,
      event.address,
      event.action,
      event.object,
      changesIn(event),
      event.outcome,
      event.status,
      event.client,
    ]),
  );

/** `name: "Clicks" → "Signups"` of each field; secrets are only named. */
const changesIn = ({ changes }: PrintedEvent): string =>
  changes
    .map(({ field, before, after, secret }) =>
      secret ? field : `${field}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
    )
    .join(', ');
