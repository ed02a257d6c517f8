import { targetChecks as targets } from '../../src/temporal/capabilities.ts';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { readSettings } from '../../src/config/settings.ts';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { migrateControl, migrateSource } from '../../src/migrate/migrate.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import { fromSetUp } from '../setup/environment.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type DrillProcesses, startDrillProcesses } from './drill_processes.ts';
import { type DrillServers, type ServerName, startDrillServers } from './drill_servers.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

const minuteMs = 60_000;
/** How long things go wrong. */
const minutes = Number(process.env.EXPORTD_DRILL_MINUTES ?? 60);
const exportCount = Number(process.env.EXPORTD_DRILL_EXPORTS ?? 200);
const workers = 3;
const projects = 5;
/** Rows that each project receives every second, in one transaction. */
const rowsPerSecond = 5;
/** How long the backlog may take to be exported after the last fault. */
const recoveryMs = 20 * minuteMs;

/** What goes wrong every ten minutes, at which minute of them, and for how many seconds. */
const outages: readonly { server: ServerName; at: number; signal: NodeJS.Signals; seconds: number }[] = [
  // A fast shutdown, as pg_ctl restart and an orderly failover do; then a crash.
  { server: 'postgresql', at: 2, signal: 'SIGINT', seconds: 5 },
  { server: 'temporal', at: 4, signal: 'SIGKILL', seconds: 15 },
  { server: 's3', at: 6, signal: 'SIGKILL', seconds: 45 },
  { server: 'postgresql', at: 8, signal: 'SIGQUIT', seconds: 10 },
];

type Call = (
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ status: number; body: Record<string, unknown> }>;

/** A project with its key. */
interface DrillProject {
  readonly id: number;
  readonly call: Call;
}

let servers: DrillServers;
let processes: DrillProcesses;
let pool: Pool;
let environment: Record<string, string>;
const sourcePassword = { value: 'first' };

beforeAll(async () => {
  servers = await startDrillServers();
  const { databaseUrl, temporalAddress, objectStore } = servers;
  await migrateControl(databaseUrl);
  await migrateSource(databaseUrl);
  pool = createPool(databaseUrl, { max: 4 });
  await pool.query(`create role drill_reader login password 'first'`);
  await pool.query('grant select on events, persons, person_distinct_ids to drill_reader');
  const s3 = new S3Client({
    endpoint: objectStore.endpoint,
    region: objectStore.region,
    credentials: objectStore,
    forcePathStyle: true,
  });
  await s3.send(new CreateBucketCommand({ Bucket: 'drill' }));
  s3.destroy();
  const { server: port } = await assignPorts(`${fromSetUp('EXPORTD_TEST_FOLDER')}/drill.ports.json`, [
    'server',
  ]);
  environment = {
    PATH: process.env.PATH ?? '',
    HOME: process.env.HOME ?? '',
    NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
    EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporalAddress,
    EXPORTD_PORT: String(port),
    EXPORTD_ENCRYPTION_KEYS: `drill:${randomBytes(32).toString('base64')}`,
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'loopback',
    EXPORTD_SETTLE_DELAY: '5s',
  };
  processes = startDrillProcesses(workers, () => ({ ...environment, SOURCE_DATABASE_URL: sourceUrl() }));
  await waitFor(async () => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    return response?.status === 200;
  }, 'the server is ready');
});
afterAll(async () => {
  await processes.stop();
  await pool.end();
  await servers.close();
});

/** The source as exportd's role reads it, with the password of the moment. */
function sourceUrl(): string {
  const url = new URL(servers.databaseUrl);
  url.username = 'drill_reader';
  url.password = sourcePassword.value;
  return url.href;
}

async function createDrillProject(name: string, user: number): Promise<DrillProject> {
  const project = await createProject(pool, { name });
  const { key } = await createKey(pool, {
    user_id: user,
    project_ids: [project.id],
    scopes: ['batch_export:read', 'batch_export:write'],
  });
  const call: Call = async (method, path, body) => {
    const response = await fetch(
      `http://127.0.0.1:${environment.EXPORTD_PORT ?? ''}/api/environments/${project.id}/${path}`,
      {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
    );
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { id: project.id, call };
}

/** Inserts rows until it is aborted; PostgreSQL's own outages are waited out. Returns how many were committed. */
async function writeRows(teams: readonly number[], signal: AbortSignal): Promise<number> {
  let committed = 0;
  while (!signal.aborted) {
    const inserted = await pool
      .query(
        `insert into events (team_id, uuid, event, distinct_id, properties, timestamp)
         select team, gen_random_uuid(), 'drill', 'person-' || n, jsonb_build_object('n', n), clock_timestamp()
         from unnest($1::int[]) team, generate_series(1, $2::int) n`,
        [teams, rowsPerSecond],
      )
      .catch(() => null);
    committed += inserted?.rowCount ?? 0;
    await delay(1_000, undefined, { signal }).catch(() => undefined);
  }
  return committed;
}

/** Runs `work` at this many minutes after `start`; does nothing after the drill's end. */
async function atMinute(start: number, minute: number, work: () => Promise<void>): Promise<void> {
  if (minute >= minutes) return;
  await delay(Math.max(0, start + minute * minuteMs - Date.now()));
  await work();
}

describe('an hour in which everything is restarted', () => {
  it(
    'loses no row, exports none twice, pauses no export and leaves no run behind',
    async () => {
      const user = await createUser(pool, {
        first_name: 'Dora',
        last_name: 'Drill',
        email: 'dora@example.com',
      });
      const owners: DrillProject[] = [];
      for (let number = 0; number < projects; number++)
        owners.push(await createDrillProject(`Drill ${number}`, user.id));
      const { endpoint, accessKeyId, secretAccessKey } = servers.objectStore;
      for (let number = 0; number < exportCount; number++) {
        const created = await owners[number % projects]?.call('POST', 'batch_exports/', {
          name: `Export ${number}`,
          interval: 'every 1 minutes',
          destination: {
            type: 'S3',
            config: {
              bucket_name: 'drill',
              region: 'us-east-1',
              prefix: `export-${number}`,
              endpoint_url: endpoint,
              aws_access_key_id: accessKeyId,
              aws_secret_access_key: secretAccessKey,
              compression: number % 2 === 0 ? 'gzip' : null,
            },
          },
        });
        expect(created?.status).toBe(201);
      }

      const writing = new AbortController();
      const written = writeRows(
        owners.map(({ id }) => id),
        writing.signal,
      );
      const start = Date.now();
      const restarts = Array.from({ length: minutes }, (_, minute) =>
        // Every third worker is killed, as by the kernel when memory runs out.
        atMinute(start, minute + 0.5, () =>
          processes.restart(`worker-${minute % workers}`, minute % 3 === 2 ? 'SIGKILL' : 'SIGTERM'),
        ),
      );
      const outagesOfServers = Array.from({ length: Math.ceil(minutes / 10) }, (_, decade) =>
        outages.map(({ server, at, signal, seconds }) =>
          atMinute(start, decade * 10 + at, () =>
            servers.restart(server, signal, () => delay(seconds * 1_000)),
          ),
        ),
      ).flat();
      // The workers learn of the new password when they are restarted, one a minute.
      const password = atMinute(start, Math.floor(minutes / 2) + 0.75, async () => {
        await pool.query(`alter role drill_reader password 'second'`);
        sourcePassword.value = 'second';
        await pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'drill_reader'`,
        );
      });
      const server = atMinute(start, 1.25, () => processes.restart('server', 'SIGTERM'));
      await Promise.all([...restarts, ...outagesOfServers, password, server]);
      await delay(Math.max(0, start + minutes * minuteMs - Date.now()));
      writing.abort();
      const rows = await written;
      const end = Date.now();

      const until = new Date(Math.floor(end / minuteMs) * minuteMs);
      const lagging = async () =>
        (
          await pool.query<{ id: string; done: number }>(
            `select export.id from exportd.batch_exports export
           where not exists (select from exportd.batch_export_runs run where run.batch_export_id = export.id
             and run.data_interval_end >= $1 and run.status = 'Completed')
           or exists (select from exportd.batch_export_runs run where run.batch_export_id = export.id
             and run.data_interval_end <= $1 and run.finished_at is null)`,
            [until],
          )
        ).rows;
      await waitFor(
        async () => (await lagging()).length === 0,
        'every export has completed the last interval',
        recoveryMs,
      );
      const recoverySeconds = (Date.now() - end) / 1_000;

      const paused = await pool.query('select id from exportd.batch_exports where paused');
      expect(paused.rows).toEqual([]);
      const statuses = await pool.query<{ status: string; runs: number }>(
        `select status, count(*)::int as runs from exportd.batch_export_runs where data_interval_end <= $1
       group by status order by status`,
        [until],
      );
      const stuck = await pool.query(
        `select id, status from exportd.batch_export_runs
       where finished_at is null and created_at < clock_timestamp() - interval '5 minutes'`,
      );
      expect(stuck.rows).toEqual([]);

      const settings = readSettings({ ...environment, SOURCE_DATABASE_URL: sourceUrl() });
      const keyRing = createKeyRing(environment.EXPORTD_ENCRYPTION_KEYS);
      const { rows: exports } = await pool.query<{ id: string }>(
        'select id from exportd.batch_exports order by created_at, id',
      );
      expect(exports).toHaveLength(exportCount);
      const wrong: unknown[] = [];
      for (const { id } of exports) {
        const { findings } = await verifyBatchExport(
          { pool, keyRing, settings, sourceUrl: servers.databaseUrl, targets, onError: () => undefined },
          { batchExportId: id, to: until.toISOString(), deep: false },
        );
        if (findings.length > 0) wrong.push({ id, findings: findings.slice(0, 3) });
      }
      process.stderr.write(
        `${JSON.stringify({
          minutes,
          exports: exportCount,
          rows,
          runs: Object.fromEntries(statuses.rows.map(({ status, runs }) => [status, runs])),
          crashes: processes.crashes(),
          recovery_seconds: recoverySeconds,
        })}\n`,
      );
      expect(wrong).toEqual([]);
      // A worker that cannot go on without a server may exit and be started again, but not all the time.
      expect(processes.crashes()).toBeLessThan(minutes);
    },
    (minutes + 60) * minuteMs,
  );
});
