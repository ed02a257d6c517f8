import type { Command } from 'commander';
import { hostname, userInfo } from 'node:os';
import type { FieldChange } from '../journal/audit.ts';
import type { Pool } from '../journal/database.ts';
import { version } from '../telemetry/version.ts';
import { parseId } from './arguments.ts';
import { CliError } from './cli_error.ts';
import { printList } from './output.ts';
import { commandSettings, requireOneInstallation } from './running_stack.ts';

/** Runs `work` with a connection pool of the control database. @throws CliError when another installation runs here */
export async function withPool<Result>(work: (pool: Pool) => Promise<Result>): Promise<Result> {
  requireOneInstallation(process.env);
  const [{ createPool }, { DATABASE_URL }] = await Promise.all([
    import('../journal/database.ts'),
    commandSettings(process.env),
  ]);
  const pool = createPool(DATABASE_URL, { max: 2 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** Adds the command `list` for rows of the control database, of one project or all. */
export const addListCommand = <Row>(
  parent: Command,
  description: string,
  list: (pool: Pool, project?: number) => Promise<readonly Row[]>,
  toLines: (rows: readonly Row[]) => string[],
): Command =>
  parent
    .command('list')
    .description(description)
    .option('--project <id>', 'only of this project', parseId)
    .option('--json', 'print JSON')
    .action(async (options: { readonly project?: number; readonly json?: boolean }) => {
      const rows = await withPool((pool) => list(pool, options.project));
      printList(options)(rows, toLines);
    });

/** What a command changes in the control database, for the audit trail. */
interface AuditedChange<Result> {
  /** Resource and verb, such as `user.create`. */
  readonly action: string;
  readonly team_id?: number | undefined;
  /** The path of the object, such as `users/1`. */
  readonly object?: string | ((result: Result) => string);
  /** The fields of the object that were set to another value. */
  readonly changes?: (result: Result, pool: Pool) => Promise<readonly FieldChange[]> | readonly FieldChange[];
}

/** Runs `work` as `withPool` does, and records in the audit trail that it has changed something. */
export const withAudit = <Result>(
  { action, team_id, object, changes }: AuditedChange<Result>,
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> =>
  withPool(async (pool) => {
    const result = await work(pool);
    const { recordAuditEvent } = await import('../journal/audit.ts');
    await recordAuditEvent(pool, {
      action,
      team_id: team_id ?? null,
      object: (typeof object === 'function' ? object(result) : object) ?? null,
      client: `exportd ${version}, ${userInfo().username}@${hostname()}`,
      user_id: null,
      key_id: null,
      address: null,
      outcome: 'done',
      status: null,
      detail: null,
      changes: [...((await changes?.(result, pool)) ?? [])],
    });
    return result;
  });

/** The id of the given user, or of the first one. @throws CliError when there is no user. */
export async function resolveUser(pool: Pool, userId: number | undefined): Promise<number> {
  const { listUsers } = await import('../http/accounts/users.ts');
  const user = userId ?? (await listUsers(pool))[0]?.id;
  if (user === undefined) throw new CliError('There is no user yet: create one with "exportd user create".');
  return user;
}
