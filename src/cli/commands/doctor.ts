import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import type { Settings } from '../../config/settings.ts';
import { createPool, type Pool } from '../../journal/database.ts';
import { CliError } from '../cli_error.ts';
import { counted, printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';

interface CheckResult {
  readonly check: string;
  readonly ok: boolean;
  /** Description of what was found, or the error. */
  readonly detail: string;
}

const migrationsFolder = join(import.meta.dirname, '../../journal/migrations');
const minPostgresqlVersion = 150_000;

/** `doctor`: checks everything that exportd depends on. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check settings, databases, migrations, Temporal and workers')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const results = await runChecks(commandSettings(process.env));
      printer(options)(results, () =>
        table(
          ['', 'check', 'result'],
          results.map(({ ok, check, detail }) => [ok ? 'ok' : 'FAILED', check, detail]),
        ),
      );
      const failed = results.filter(({ ok }) => !ok).map(({ check }) => check);
      if (failed.length > 0) throw new CliError(`Failed checks: ${failed.join(', ')}.`);
    });
}

async function runChecks(settings: Settings): Promise<CheckResult[]> {
  const pool = createPool(settings.DATABASE_URL, { max: 2 });
  const source = createPool(settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL, { max: 1 });
  try {
    return [
      await check('encryption keys', () => {
        createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
        return 'valid';
      }),
      await check('control database', () => describeServer(pool)),
      await check('migrations', () => describeMigrations(pool)),
      await check('source', () => describeRelations(source, settings)),
      await check('Temporal', () => describeWorkers(settings)),
    ];
  } finally {
    await Promise.all([pool.end(), source.end()]);
  }
}

async function check(name: string, run: () => string | Promise<string>): Promise<CheckResult> {
  try {
    return { check: name, ok: true, detail: await run() };
  } catch (error) {
    // The error of a refused connection has an empty message.
    const detail = error instanceof Error && error.message !== '' ? error.message : 'cannot connect';
    return { check: name, ok: false, detail };
  }
}

async function describeServer(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ number: number; version: string }>(
    `select current_setting('server_version_num')::integer as number, current_setting('server_version') as version`,
  );
  const [server] = rows;
  if (!server || server.number < minPostgresqlVersion)
    throw new Error(`PostgreSQL ${server?.version ?? '?'} is too old: version 15 or newer is required`);
  return `PostgreSQL ${server.version}`;
}

async function describeMigrations(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>('select name from exportd_migrations');
  const applied = new Set(rows.map(({ name }) => name));
  const missing = readdirSync(migrationsFolder)
    .map((file) => file.replace(/\.sql$/, ''))
    .filter((name) => !applied.has(name));
  if (missing.length > 0) throw new Error(`missing ${missing.join(', ')}: run "exportd migrate"`);
  return `${applied.size} applied`;
}

async function describeRelations(source: Pool, settings: Settings): Promise<string> {
  const names = [
    settings.EXPORTD_EVENTS_RELATION,
    settings.EXPORTD_PERSONS_RELATION,
    settings.EXPORTD_PERSON_DISTINCT_IDS_RELATION,
  ];
  const { rows } = await source.query<{ name: string }>(
    'select name from unnest($1::text[]) as name where to_regclass(name) is null',
    [names],
  );
  if (rows.length > 0) throw new Error(`missing table or view ${rows.map(({ name }) => name).join(', ')}`);
  return names.join(', ');
}

async function describeWorkers(settings: Settings): Promise<string> {
  const [{ createClient }, { countPollers }] = await Promise.all([
    import('../../temporal/connections.ts'),
    import('../../temporal/clients/pollers.ts'),
  ]);
  const temporal = createClient(settings);
  try {
    const pollers = await countPollers(temporal.client, settings).catch(() => {
      throw new Error(`cannot connect to ${settings.TEMPORAL_ADDRESS}`);
    });
    if (pollers === 0) throw new Error('no worker is polling: run "exportd worker"');
    return `${settings.TEMPORAL_ADDRESS}, ${counted(pollers, 'poller')}`;
  } finally {
    await temporal.close();
  }
}
