import type { Command } from 'commander';
import { type FieldChange, readAuditEvents } from '../../journal/audit.ts';
import { parseId } from '../arguments.ts';
import { printList, table } from '../output.ts';
import { withPool } from '../running_stack.ts';
import {
  type JsonObject,
  openService,
  results,
  searchOf,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';
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
      printList(options)(events as readonly JsonObject[], auditTable);
    });
}

async function readFromService(options: AuditOptions): Promise<readonly unknown[]> {
  const { user, ofKey: key, action, object, since, limit } = options;
  const search = searchOf({ user: user?.toString(), key, action, object, since, limit: String(limit) });
  return results((await openService(options).call('GET', `audit/${search}`)).body);
}

async function readFromDatabase(options: AuditOptions): Promise<readonly unknown[]> {
  const { project: team_id, user, ofKey: key, object, since, limit } = options;
  const filter = { team_id, user, key, actions: options.action?.split(','), object, since };
  return withPool(async (pool) => (await readAuditEvents(pool, filter, { limit, offset: 0 })).results);
}

const auditTable = (events: readonly JsonObject[]): string[] =>
  table(
    ['at', 'user', 'key', 'address', 'action', 'object', 'changes', 'outcome', 'status', 'client'],
    events.map((event) => [
      event.at,
      (event.user as { email: string } | null)?.email,
      (event.key as { prefix: string } | null)?.prefix,
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
const changesIn = ({ changes }: JsonObject): string =>
  (changes as FieldChange[])
    .map(({ field, before, after, secret }) =>
      secret ? field : `${field}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`,
    )
    .join(', ');
