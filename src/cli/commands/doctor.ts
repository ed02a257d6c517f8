import { readdirSync } from 'node:fs';
import type { Command } from 'commander';
import { installedPath } from '../../config/installation.ts';
import { createKeyRing, type KeyRing, SecretUnreadable } from '../../config/key_ring.ts';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer, table } from '../output.ts';
import { commandSettings, databaseNameOf, requireOneInstallation, serverUrlOf } from '../running_stack.ts';
import { describeQueryRole } from './query.ts';
import { listStoredSecrets } from './secrets.ts';

interface CheckResult {
  readonly check: string;
  readonly ok: boolean;
  /** Description of what was found, or the error. */
  readonly detail: string;
}

const migrationsFolder = installedPath('src/journal/migrations');
const minPostgresqlVersion = 150_000;

/** `doctor`: checks everything that exportd depends on. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'check settings, databases, migrations, Temporal and workers, and count what needs attention',
    )
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const failed = await runDoctor(options);
      if (failed.length > 0) throw new CliError(`Failed checks: ${failed.join(', ')}.`);
    });
}

/** Prints all checks of the installation that the environment names. @returns the names of those that failed */
export async function runDoctor(options: { readonly json?: boolean }): Promise<string[]> {
  const results = await runChecks(await commandSettings(process.env));
  printer(options)(results, () =>
    table(
      ['', 'check', 'result'],
      results.map(({ ok, check, detail }) => [ok ? 'ok' : 'FAILED', check, detail]),
    ),
  );
  return results.filter(({ ok }) => !ok).map(({ check }) => check);
}

async function runChecks(settings: Settings): Promise<CheckResult[]> {
  const { createPool } = await import('../../journal/database.ts');
  const pool = createPool(settings.DATABASE_URL, { max: 2 });
  const source = createPool(settings.SOURCE_DATABASE_URL, {
    max: 1,
    allowsStandby: true,
  });
  try {
    return [
      await check('installation', () => {
        requireOneInstallation(process.env);
        return 'one';
      }),
      await check('server', describeService),
      await check('encryption keys', () => describeKeys(createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS))),
      await check('control database', () => describeServer(pool, settings.DATABASE_URL)),
      await check('migrations', () => describeMigrations(pool)),
      await check('stored secrets', () => describeSecrets(pool, settings)),
      await check('source', () => describeRelations(settings)),
      await check('query role', () => describeQueryRole(pool, source, settings)),
      await check('Temporal', () => describeWorkers(settings)),
      await check('prefixes', () => describeSharedKeys(pool)),
      await check('conditions', () => describeConditions(pool)),
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

async function describeServer(pool: Pool, url: string): Promise<string> {
  const { rows } = await pool.query<{ number: number; version: string }>(
    `select current_setting('server_version_num')::integer as number, current_setting('server_version') as version`,
  );
  const [server] = rows;
  if (!server || server.number < minPostgresqlVersion)
    throw new Error(`PostgreSQL ${server?.version ?? '?'} is too old: version 15 or newer is required`);
  return `PostgreSQL ${server.version} at ${databaseNameOf(url)}`;
}

async function describeMigrations(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>('select name from exportd.migrations');
  const applied = new Set(rows.map(({ name }) => name));
  const missing = readdirSync(migrationsFolder)
    .map((file) => file.replace(/\.sql$/, ''))
    .filter((name) => !applied.has(name));
  if (missing.length > 0) throw new Error(`missing ${missing.join(', ')}: run "exportd migrate"`);
  const { reportVersions } = await import('../../projections/registry.ts');
  const { differs, needs_newer } = await reportVersions(pool);
  if (differs !== null) throw new Error(differs);
  if (needs_newer !== null) throw new Error(needs_newer);
  return `${applied.size} applied`;
}

const describeKeys = ({ opens }: KeyRing): string =>
  opens ? 'valid' : 'valid; they encrypt only, as those of servers should. Workers need the private key';

/** How many unreadable secrets are named. */
const maxNamedSecrets = 3;

/** Whether the keys open the stored secrets; those that only workers open are in order. */
async function describeSecrets(pool: Pool, settings: Settings): Promise<string> {
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const secrets = await listStoredSecrets(pool);
  const errors = secrets.flatMap(({ owner, sealed, location }) => {
    try {
      keyRing.open(sealed, location);
      return [];
    } catch (error) {
      if (error instanceof SecretUnreadable) return [{ owner, error }];
      throw error;
    }
  });
  const unreadable = errors.filter(({ error }) => !error.isForWorkers);
  if (unreadable.length > 0) {
    const named = unreadable
      .slice(0, maxNamedSecrets)
      .map(({ owner, error }) => `${owner}: ${error.message}`);
    const others = unreadable.length - named.length;
    throw new Error(
      `${unreadable.length} of ${counted(secrets.length, 'secret')} cannot be decrypted: ${named.join(' ')}${others > 0 ? ` And ${others} more.` : ''}`,
    );
  }
  const forWorkers = errors.length === 0 ? '' : `, ${errors.length} of them by workers only`;
  return `${counted(secrets.length, 'secret')}, all can be decrypted${forWorkers}`;
}

/** The server that `export` and `webhook` commands use, if they have one. */
async function describeService(): Promise<string> {
  const baseUrl = serverUrlOf(process.env);
  if (baseUrl === undefined) return 'none: EXPORTD_BASE_URL is not set, and no demo is running';
  const response = await fetch(`${baseUrl.replace(/\/+$/, '')}/healthz`).catch(() => undefined);
  if (!response?.ok) throw new Error(`no response from ${baseUrl}`);
  return baseUrl;
}

/** Exports of different projects to the same keys: allowed, since no project may learn of another. */
async function describeSharedKeys(pool: Pool): Promise<string> {
  const { findSharedKeys } = await import('../../decisions/destination_rules.ts');
  const shared = await findSharedKeys(pool);
  if (shared.length === 0) return 'no two projects write the same keys';
  return shared
    .map(({ location, exports }) => {
      const owners = exports.map(({ id, team_id }) => `${id} of project ${team_id}`);
      return `the same keys in ${location}: ${owners.join(', ')}`;
    })
    .join('; ');
}

/** How many exports need attention. @throws Error that names the outages, if there are any */
async function describeConditions(pool: Pool): Promise<string> {
  const [{ concernOf, incidentsOf }, { readStandings }, { readOpenFaults }] = await Promise.all([
    import('../../domain/condition.ts'),
    import('../../projections/export_conditions.ts'),
    import('../../failures/operator_faults.ts'),
  ]);
  const { rows } = await pool.query<{ id: string }>('select id from exportd.batch_exports where not deleted');
  const standings = await readStandings(
    pool,
    rows.map(({ id }) => id),
    () => undefined,
  );
  const conditions = [...standings.values()].map(({ condition }) => condition);
  const incidents = incidentsOf(conditions);
  const named = new Set(incidents.map(({ id }) => id));
  // A fault that no export shows.
  const faults = (await readOpenFaults(pool)).filter(({ incident_id }) => !named.has(incident_id));
  const urgent = conditions.filter(({ severity }) => severity !== 'ok').length;
  const behind = conditions.filter(({ cause }) => cause === 'behind_capacity');
  const capacity = behind[0]
    ? `. ${counted(behind.length, 'export')} for lack of capacity, the first: ${behind[0].summary}`
    : '';
  const attention = `${urgent} of ${counted(conditions.length, 'export')} ${urgent === 1 ? 'needs' : 'need'} attention, see "exportd status"${capacity}`;
  if (incidents.length > 0 || faults.length > 0)
    throw new Error(
      [
        ...incidents.map(
          ({ id, summary, ...incident }) => `${summary} ${concernOf(incident)} (incident ${id}).`,
        ),
        ...faults.map(({ incident_id, message }) => `${message} (incident ${incident_id})`),
        attention,
      ].join(' '),
    );
  return urgent === 0 ? `${counted(conditions.length, 'export')}, none needs attention` : attention;
}

async function describeRelations(settings: Settings): Promise<string> {
  const [{ checkSource }, { withSource }] = await Promise.all([
    import('../../source/check/check_source.ts'),
    import('../open_source.ts'),
  ]);
  const { ok, findings, relations } = await withSource(settings, (connections) =>
    checkSource(connections, settings),
  );
  const hint = 'run "exportd source check" for the SQL that fixes it';
  if (!ok) {
    const errors = findings.filter(({ level }) => level === 'error');
    throw new Error(`${errors.map(({ subject, message }) => `${subject}: ${message}`).join(' ')} ${hint}`);
  }
  const found = relations.filter(({ kind }) => kind !== null).map(({ relation }) => relation);
  const warnings = findings.length === 0 ? '' : `; ${counted(findings.length, 'warning')}: ${hint}`;
  return `${found.join(', ')} at ${databaseNameOf(settings.SOURCE_DATABASE_URL)}${warnings}`;
}

async function describeWorkers(settings: Settings): Promise<string> {
  const [{ createClient, describeConnection }, { countPollers, describeIdlePollers }, { describeProblem }] =
    await Promise.all([
      import('../../temporal/connections.ts'),
      import('../../temporal/clients/executions.ts'),
      import('../../temporal/problems.ts'),
    ]);
  const connection = describeConnection(settings);
  const temporal = await createClient(settings);
  try {
    const pollers = await countPollers(temporal.client, settings).catch(async (error: unknown) => {
      throw new Error(`${connection}: ${(await describeProblem(error, settings)).message}`);
    });
    if (pollers === 0)
      throw new Error(`${connection}: ${await describeIdlePollers(temporal.client, settings)}`);
    return `${connection}, ${counted(pollers, 'poller')}`;
  } finally {
    await temporal.close();
  }
}
