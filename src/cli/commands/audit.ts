import { type Command, Option } from 'commander';
import { auditCsv } from '../../http/audit/audit_csv.ts';
import { type AuditEvent, formatChanges, readAuditEvents, streamAuditEvents } from '../../journal/audit.ts';
import { parseId } from '../arguments.ts';
import { printList, stdoutFlushed, table } from '../output.ts';
import { given, openService, serviceCommand, type ServiceCommandOptions } from '../service_client.ts';
import { usesService } from '../account_command.ts';
import { withPool } from '../control_database.ts';

interface AuditOptions extends ServiceCommandOptions {
  readonly database?: boolean;
  readonly user?: number;
  readonly ofKey?: string;
  readonly action?: string;
  readonly object?: string;
  readonly excludeAction?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
  readonly csv?: true;
}

const defaultLimit = 50;

/** What both the service and the database say of an event. */
type PrintedEvent = Omit<AuditEvent, 'id' | 'detail' | 'changes'> & {
  readonly changes: readonly AuditEvent['changes'][number][];
};

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
    .option('--exclude-action <names>', 'none of these actions, such as session.sign_in')
    .option('--object <path>', 'only of this object and its parts, such as batch_exports/<id>')
    .option('--since <time>', 'only from this ISO 8601 time on')
    .option('--until <time>', 'only before this ISO 8601 time')
    .option('--limit <number>', `number of events (default: ${defaultLimit}; with --csv all)`, parseId)
    .addOption(new Option('--csv', 'print CSV for spreadsheets').conflicts('json'))
    .action(async (options: AuditOptions) => {
      if (options.csv) {
        await (usesService(options) ? printCsvOfService(options) : printCsvOfDatabase(options));
        return;
      }
      const events = usesService(options) ? await readFromService(options) : await readFromDatabase(options);
      printList(options)(events, auditTable);
    });
}

const queryOf = (options: AuditOptions) => {
  const { user, ofKey: key, action, excludeAction: exclude_action, object, since, until } = options;
  return given({ user, key, action, exclude_action, object, since, until });
};

const filterOf = (options: AuditOptions) => {
  const { project: team_id, user, ofKey: key, action, excludeAction, object, since, until } = options;
  const actions = { actions: action?.split(','), excluded_actions: excludeAction?.split(',') };
  return { team_id, user, key, object, since, until, ...actions };
};

async function readFromService(options: AuditOptions): Promise<readonly PrintedEvent[]> {
  const query = { ...queryOf(options), limit: options.limit ?? defaultLimit };
  return (await openService(options).get('/audit', { query })).results;
}

async function readFromDatabase(options: AuditOptions): Promise<readonly PrintedEvent[]> {
  const window = { limit: options.limit ?? defaultLimit, offset: 0 };
  return withPool(async (pool) => (await readAuditEvents(pool, filterOf(options), window)).results);
}

async function printCsvOfService(options: AuditOptions): Promise<void> {
  const query = given({ ...queryOf(options), limit: options.limit });
  process.stdout.write(await openService(options).csv('/audit', query));
}

async function printCsvOfDatabase(options: AuditOptions): Promise<void> {
  await withPool(async (pool) => {
    for await (const lines of auditCsv(streamAuditEvents(pool, filterOf(options), options.limit))) {
      process.stdout.write(lines);
      await stdoutFlushed();
    }
  });
}

const auditTable = (events: readonly PrintedEvent[]): string[] =>
  table(
    [
      'at',
      'user',
      'key',
      'project',
      'address',
      'action',
      'name',
      'object',
      'changes',
      'outcome',
      'status',
      'client',
    ],
    events.map((event) => [
      event.at,
      event.user?.email,
      event.key?.prefix,
      event.project?.name,
      event.address,
      event.action,
      event.object_name,
      event.object,
      formatChanges(event.changes),
      event.outcome,
      event.status,
      event.client,
    ]),
  );
