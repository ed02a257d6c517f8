import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import type { Settings } from '../../config/settings.ts';
import { createPool, type Pool } from '../../journal/database.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';

interface Finding {
  readonly check: string;
  readonly ok: boolean;
  /** What was found, or what is wrong. */
  readonly detail: string;
}

const migrationsFolder = join(import.meta.dirname, '../../journal/migrations');
const oldestPostgresql = 150_000;

/** `doctor`: whether everything that exportd needs is there. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check settings, databases, migrations, Temporal and workers')
    .option('--json', 'print one JSON document')
    .action(async (options: { json?: boolean }) => {
      const findings = await examine(commandSettings(process.env));
      printer(options)(findings, () =>
        table(
          ['', 'check', 'found'],
          findings.map(({ ok, check, detail }) => [ok ? 'ok' : 'FAILED', check, detail]),
        ),
      );
      const failed = findings.filter(({ ok }) => !ok).map(({ check }) => check);
      if (failed.length > 0) throw new CliError(`Not everything is well: ${failed.join(', ')}.`);
    });
}

async function examine(settings: Settings): Promise<Finding[]> {
  const pool = createPool(settings.DATABASE_URL, { max: 2 });
  const source = createPool(settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL, { max: 1 });
  try {
    return [
      await find('encryption keys', () => {
        createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
        return 'usable';
      }),
      await find('control database', () => describeServer(pool)),
      await find('migrations', () => describeMigrations(pool)),
      await find('source', () => describeRelations(source, settings)),
      await find('Temporal', () => describeWorkers(settings)),
    ];
  } finally {
    await Promise.all([pool.end(), source.end()]);
  }
}

async function find(check: string, look: () => string | Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await look() };
  } catch (error) {
    // A refused connection has several causes and no message of its own.
    const detail = error instanceof Error && error.message !== '' ? error.message : 'does not answer';
    return { check, ok: false, detail };
  }
}

async function describeServer(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ number: number; version: string }>(
    `select current_setting('server_version_num')::integer as number, current_setting('server_version') as version`,
  );
  const [server] = rows;
  if (!server || server.number < oldestPostgresql)
    throw new Error(`PostgreSQL ${server?.version ?? '?'} is too old: 15 or newer is needed.`);
  return `PostgreSQL ${server.version}`;
}

async function describeMigrations(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>('select name from exportd_migrations');
  const applied = new Set(rows.map(({ name }) => name));
  const missing = readdirSync(migrationsFolder)
    .map((file) => file.replace(/\.sql$/, ''))
    .filter((name) => !applied.has(name));
  if (missing.length > 0) throw new Error(`not applied: ${missing.join(', ')}; run "exportd migrate"`);
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
  if (rows.length > 0) throw new Error(`there is no relation ${rows.map(({ name }) => name).join(', ')}`);
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
      throw new Error(`does not answer at ${settings.TEMPORAL_ADDRESS}`);
    });
    if (pollers === 0) throw new Error('answers, but no worker polls: run "exportd worker"');
    return `${settings.TEMPORAL_ADDRESS}, ${pollers} pollers`;
  } finally {
    await temporal.close();
  }
}
