import { execFile } from 'node:child_process';
import { realpathSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createChildProcesses, waitUntilReady } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import {
  isPostgresqlReady,
  postgresqlProgram,
  postgresqlUrl,
} from '../../src/local_stack/servers/postgresql.ts';
import { isTemporalReady } from '../../src/local_stack/servers/start_servers.ts';
import { createPool } from '../../src/journal/database.ts';
import { migrateControl, migrateSource } from '../../src/migrate/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { startPgbouncer } from '../setup/pgbouncer.ts';
import { programPath } from '../setup/programs.ts';
import { prepareQueryRole } from '../setup/query_role.ts';
import { otherStores, startStore } from '../setup/stores.ts';
import { temporalCommand } from '../setup/temporal_command.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertLargeEvents } from './large_events.ts';
import { insertEvents } from './rows.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const runProgram = promisify(execFile);

const rowsOfHour = 2_000;
/** Three parts. */
const largeRows = 2_500;
const lateRows = 7;
const allRows = 2 * rowsOfHour + largeRows + lateRows;
const range = { start_at: hourAgo(4).toISOString(), end_at: hourAgo(1).toISOString() };
const formats = {
  JSONLines: { file_format: 'JSONLines', compression: 'gzip' },
  Parquet: { file_format: 'Parquet', compression: 'zstd' },
} as const;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function start(...[name, ...options]: Parameters<typeof startStack>): Promise<Stack> {
  const stack = await startStack(name, ...options);
  closing.push(() => stack.stop());
  return stack;
}

/**
 * Backfills three hours in both formats, one of them in several parts, retries one with late rows, and compares everything
 * with the source.
 * @param during called while the backfills run
 */
async function backfillRetryVerify(stack: Stack, during = () => Promise.resolve()): Promise<unknown[]> {
  await insertEvents(stack.pool, stack.projectId, hourAgo(4), rowsOfHour);
  await insertEvents(stack.pool, stack.projectId, hourAgo(3), rowsOfHour);
  await insertLargeEvents(stack, hourAgo(2), largeRows);
  const exportIds = await Promise.all(Object.values(formats).map((config) => stack.createExport({}, config)));
  const tested = await stack.call('POST', `/batch_exports/${exportIds[0] ?? ''}/test/`);
  expect(tested.status).toBe(200);
  for (const id of exportIds) await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  await during();
  const completed = (id: string, wanted: number) =>
    waitFor(
      async () => {
        const runs = (await stack.runs(id)).filter(({ status }) => status === 'Completed');
        return runs.length >= wanted && runs;
      },
      `${wanted} runs of ${id} are Completed`,
      600_000,
    );
  const runs = await Promise.all(exportIds.map((id) => completed(id, 3)));
  await insertEvents(stack.pool, stack.projectId, hourAgo(3), lateRows, 60);
  for (const [index, id] of exportIds.entries()) {
    const run = runs[index]?.find((one) => Date.parse(one.data_interval_start) === hourAgo(3).getTime());
    const retried = await stack.call('POST', `/batch_exports/${id}/runs/${run?.id ?? ''}/retry/`, {});
    expect(retried.status).toBeLessThan(300);
  }
  await Promise.all(exportIds.map((id) => completed(id, 4)));
  const reports = [];
  for (const id of exportIds) reports.push(await verifyExport(stack, id));
  return reports;
}

/** What `verify --deep` finds of both exports. */
const everyRowOnce = Object.keys(formats).map(() =>
  expect.objectContaining({
    findings: [],
    totals: expect.objectContaining({ manifests: 3, rows: allRows }),
  }),
);

describe('backfill, retry and verify --deep in JSON lines and Parquet find every row once', () => {
  it('in versitygw', async () => {
    expect(await backfillRetryVerify(await start('matrix-versitygw'))).toEqual(everyRowOnce);
  });

  it.each(otherStores)('in %s', async (name) => {
    const store = await startStore(name);
    closing.push(() => store.close());
    expect(await backfillRetryVerify(await start(`matrix-${name}`, {}, { bucket: store.bucket }))).toEqual(
      everyRowOnce,
    );
  });

  it.each([15, 16, 17, 18] as const)('with control database and source in PostgreSQL %s', async (major) => {
    const database = major === 18 ? await createTestDatabase() : await startPostgresql(major);
    const { rows } = await database.pool.query<{ version: number }>(
      `select current_setting('server_version_num')::int / 10000 as version`,
    );
    expect(rows).toEqual([{ version: major }]);
    expect(await backfillRetryVerify(await start(`matrix-postgresql-${major}`, {}, { database }))).toEqual(
      everyRowOnce,
    );
  });

  it.each(['session', 'transaction'] as const)(
    'with PgBouncer in %s mode before the source',
    async (mode) => {
      const database = await createTestDatabase();
      const bouncer = await startPgbouncer(database.url, mode, { default_pool_size: '20' });
      closing.push(() => bouncer.close());
      const settings = { SOURCE_DATABASE_URL: bouncer.url };
      expect(
        await backfillRetryVerify(await start(`matrix-pgbouncer-${mode}`, settings, { database })),
      ).toEqual(everyRowOnce);
    },
  );

  it('with PgBouncer in session mode before the control database too', async () => {
    const database = await createTestDatabase();
    const bouncer = await startPgbouncer(database.url, 'session', {
      default_pool_size: '100',
      ignore_startup_parameters: 'options,statement_timeout',
    });
    closing.push(() => bouncer.close());
    const settings = { DATABASE_URL: bouncer.url, SOURCE_DATABASE_URL: bouncer.url };
    expect(
      await backfillRetryVerify(await start('matrix-pgbouncer-control', settings, { database })),
    ).toEqual(everyRowOnce);
  });

  it('with two workers, of which one is killed', async () => {
    const stack = await start('matrix-workers', failoverWorkers);
    const second = await stack.startWorker();
    expect(await backfillRetryVerify(stack, () => second.kill())).toEqual(everyRowOnce);
  });

  it('with two workers, of which one is killed, and Temporal on PostgreSQL', async () => {
    const TEMPORAL_ADDRESS = await startTemporalOnPostgresql();
    const stack = await start('matrix-temporal-postgresql', { ...failoverWorkers, TEMPORAL_ADDRESS });
    const second = await stack.startWorker();
    expect(await backfillRetryVerify(stack, () => second.kill())).toEqual(everyRowOnce);
  });
});

/** Starts a Temporal server of four services with its databases in PostgreSQL. Returns its address. */
async function startTemporalOnPostgresql(): Promise<string> {
  const [server, tool] = [await programPath('temporal-server'), await programPath('temporal-sql-tool')];
  const folder = openDataFolder(join(fromSetUp('EXPORTD_TEST_FOLDER'), `temporal-${randomUUID()}`));
  const database = new URL(fromSetUp('EXPORTD_TEST_DATABASE_URL'));
  const services = ['frontend', 'history', 'matching', 'worker'] as const;
  const ports = await assignPorts(
    folder.inside('ports.json'),
    services.flatMap((service) => [service, `${service} membership`]),
  );
  const portOf = (name: string): number => ports[name] ?? 0;
  const stores = { temporal: 'temporal', temporal_visibility: 'visibility' };
  const prefix = `t${randomUUID().slice(0, 8)}_`;
  // Go's client takes the single iteration that passwords of the test server have for an attack.
  const login = { name: `${prefix}role`, password: randomUUID() };
  const pool = createPool(database.href, { max: 1 });
  await pool.query(
    `set scram_iterations = 4096; create role ${login.name} superuser login password '${login.password}'`,
  );
  await pool.end();
  for (const [name, schema] of Object.entries(stores)) {
    const sql = (...args: string[]) =>
      runProgram(tool, [
        '--plugin',
        'postgres12',
        '--endpoint',
        database.hostname,
        '--port',
        database.port,
        '--user',
        login.name,
        '--password',
        login.password,
        '--database',
        `${prefix}${name}`,
        ...args,
      ]);
    await sql('create-database');
    await sql('setup-schema', '--version', '0.0');
    await sql('update-schema', '--schema-name', `postgresql/v12/${schema}`);
  }
  const store = (name: string) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName: `${prefix}${name}`,
      connectAddr: database.host,
      connectProtocol: 'tcp',
      user: login.name,
      password: login.password,
      maxConns: 10,
      maxIdleConns: 10,
    },
  });
  const address = `127.0.0.1:${portOf('frontend')}`;
  const config = {
    log: { stdout: true, level: 'warn' },
    persistence: {
      numHistoryShards: 4,
      defaultStore: 'default',
      visibilityStore: 'visibility',
      datastores: { default: store('temporal'), visibility: store('temporal_visibility') },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' } },
    services: Object.fromEntries(
      services.map((service) => [
        service,
        {
          rpc: {
            grpcPort: portOf(service),
            membershipPort: portOf(`${service} membership`),
            bindOnLocalHost: true,
          },
        },
      ]),
    ),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: address },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    publicClient: { hostPort: address },
    dynamicConfigClient: {
      filepath: join(import.meta.dirname, '../../.config/temporal_dynamic_config.yaml'),
      pollInterval: '60s',
    },
  };
  // JSON is YAML.
  writeFileSync(folder.inside('development.yaml'), JSON.stringify(config));
  const children = createChildProcesses(folder);
  closing.push(() => children.stopAll());
  const child = children.start({
    name: 'temporal',
    command: server,
    args: ['--root', folder.path, '--config', '.', '--env', 'development', '--allow-no-auth', 'start'],
    stopSignal: 'SIGTERM',
  });
  const createNamespace = () =>
    temporalCommand().then((command) =>
      runProgram(command, [
        'operator',
        'namespace',
        'create',
        '--namespace',
        'default',
        '--address',
        address,
      ]),
    );
  await waitUntilReady(child, () => createNamespace().then(() => true), 120_000);
  await waitFor(
    () => isTemporalReady({ temporal: portOf('frontend'), temporalUi: 0 }).catch(() => false),
    'the namespace can be used',
  );
  return address;
}

/** Starts another version of PostgreSQL, with a migrated database. */
async function startPostgresql(major: 15 | 16 | 17): Promise<TestDatabase> {
  const binaries = dirname(realpathSync(await programPath(`postgresql-${major}`)));
  const folder = openDataFolder(
    join(fromSetUp('EXPORTD_TEST_FOLDER'), `postgresql-${major}-${randomUUID()}`),
  );
  const { postgresql: port } = await assignPorts(folder.inside('ports.json'), ['postgresql']);
  const children = createChildProcesses(folder);
  const password = 'matrix';
  const program = await postgresqlProgram(folder, port, password, false, { binaries });
  closing.push(() => children.stopAll());
  await waitUntilReady(children.start(program), () => isPostgresqlReady(port, password));
  const url = postgresqlUrl(port, password);
  await migrateControl(url);
  await migrateSource(url);
  await prepareQueryRole(url);
  const pool = createPool(url, { max: 10 });
  return { url, pool, drop: () => pool.end() };
}
