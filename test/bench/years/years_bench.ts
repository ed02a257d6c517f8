import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { collapseHistory } from '../../../src/decisions/collapse_history.ts';
import { createPolicies } from '../../../src/decisions/policies.ts';
import { readDueMaintenance } from '../../../src/decisions/due_maintenance.ts';
import { startServer } from '../../../src/http/server.ts';
import { createPool, type Pool } from '../../../src/journal/database.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { migrateControl } from '../../../src/migrate/migrate.ts';
import { buildProjections, openJournal, switchProjections } from '../../../src/projections/registry.ts';
import { createLogger } from '../../../src/telemetry/logger.ts';
import { createExecutionLists } from '../../../src/temporal/clients/executions.ts';
import { createWorkflowClients } from '../../../src/temporal/clients/workflow_clients.ts';
import { createClient } from '../../../src/temporal/connections.ts';
import { createReconcileLoops } from '../../../src/temporal/reconcilers/reconcile_loops.ts';
import { reconcilers } from '../../../src/temporal/reconcilers/registry.ts';
import { createSignalRecovery } from '../../../src/temporal/reconcilers/signal_recovery.ts';
import { ensureSearchAttributes } from '../../../src/temporal/search_attributes.ts';
import { measurePage, pageRequests } from './console_pages.ts';
import { copyExport } from '../copies.ts';
import { insertEvents, startOfHour } from '../events.ts';
import {
  backfill,
  createExport,
  type Deployment,
  deploymentOn,
  exportingProject,
  hoursAfter,
  withExportd,
} from '../exportd.ts';
import { megabytes, rounded, type ResultTable, type Skipped } from '../results.ts';
import {
  createBenchAccount,
  measureOnScratch,
  type BenchAccount,
  type Scratch,
  type ScratchOptions,
  type ScratchStack,
} from '../scratch.ts';
import { configRules, storedRows } from '../../../src/temporal/capabilities.ts';

/** The options of the command line. */
interface YearsBenchOptions extends ScratchOptions {
  readonly runs: number;
  readonly repeat: number;
}

/** Result of `npm run bench -- years`. Times are in seconds if their name does not say milliseconds. */
export type YearsBenchResult = Awaited<ReturnType<typeof runYearsBench>>;

const rowsPerHour = 200;
/** A collapse of very many runs is measured for so long, and then ends. */
const maxRetentionMs = 240_000;
/** How long appends are measured with nothing beside: what the machine alone makes of the slowest one. */
const floorMs = 30_000;

/** Bounds of what is measured; the first is a lower one, the others are upper ones, in milliseconds. */
const goals = {
  events_per_second: 10_000,
  append_beside_rebuild: 200,
  append_beside_retention: 100,
  switch: 1_000,
  request: 300,
};

/**
 * Measures what years leave: many exports with as many runs each, of which one export is real and the others are copies of its
 * journal; their read models are built by the fold. Deletes everything that it created.
 * @throws LaunchError when a process exits or a request fails. @throws the reason of an aborted signal
 */
export async function runYearsBench(options: YearsBenchOptions, report: Report, signal: AbortSignal) {
  const hours = Math.ceil(Math.sqrt(options.runs));
  const exports = Math.ceil(options.runs / hours);
  return measureOnScratch(options, report, signal, async (scratch) => {
    const { stack, pool } = scratch;
    const account = await createBenchAccount(pool);
    const deployment = await deploymentOn(stack, 'years');
    const start = hoursAfter(startOfHour(), -hours);
    const exportId = await exportHours(scratch, deployment, account, start, hours);
    report(`Copying its journal ${String(exports - 1)} times`);
    await copyExport(pool, { id: exportId, copies: exports - 1 });
    await spreadComparisons(pool);

    report('Building the read models, with nothing beside');
    const rebuild = await buildAndSwitch(pool, report, signal);
    await withoutTimeout(pool, (connection) => connection.query('vacuum analyze'));
    const tables = await readSizes(pool);

    report('Opening every page, and requesting everything that can be read');
    const requests = await measureRequests(deployment, account, {
      exportId,
      start,
      repeat: options.repeat,
      pool,
      signal,
    });
    const passes = await measurePasses(scratch, deployment, report);
    report('Backing up and restoring');
    const backup = await measureBackup(scratch);

    report('Appending, with nothing beside');
    const floor = await besideAppends(stack, { exportId, name: 'floor' }, () =>
      delay(floorMs, undefined, { signal }),
    );
    report('Building the read models beside appends');
    const besideRebuild = await besideAppends(stack, { exportId, name: 'rebuild' }, () =>
      buildAndSwitch(pool, report, signal),
    );
    report('Collapsing the history beside appends');
    const besideRetention = await besideAppends(stack, { exportId, name: 'retention' }, async () => {
      const startedAt = performance.now();
      const journal = openJournal(pool);
      const retention = { historyMs: 0, deletedExportMs: 0, idempotencyKeyMs: 0, newestRuns: 10 };
      const isOver = (): boolean => signal.aborted || performance.now() - startedAt > maxRetentionMs;
      const counts = await collapseHistory(journal, retention, storedRows, isOver);
      return { seconds: secondsSince(startedAt), ...counts };
    });
    signal.throwIfAborted();
    await vacuumFull(pool);
    return {
      exports,
      runs: exports * hours,
      tables,
      rebuild,
      append_floor_ms: floor.append_ms,
      rebuild_beside_appends: { ...besideRebuild.result, append_ms: besideRebuild.append_ms },
      retention: {
        ...besideRetention.result,
        append_ms: besideRetention.append_ms,
        tables: await readSizes(pool),
      },
      requests,
      passes,
      backup,
    };
  });
}

const secondsSince = (startedAt: number): number => rounded((performance.now() - startedAt) / 1_000);

/** Exports hours of one export. @returns its id */
async function exportHours(
  scratch: Scratch,
  deployment: Deployment,
  account: BenchAccount,
  start: Date,
  hours: number,
): Promise<string> {
  const { stack, report, signal } = scratch;
  const count = hours * rowsPerHour;
  await insertEvents(stack.databaseUrl, { teamId: account.teamId, start, hours, count }, report, signal);
  return withExportd(stack, deployment, {}, async () => {
    report(`Exporting ${String(hours)} hours of one export`);
    const project = exportingProject(scratch, deployment, account);
    const created = await createExport(project, { name: 'years' });
    await backfill(project, { exportIds: [created], start, hours });
    return created;
  });
}

/** Intervals of years are due at different times: without this, all would be compared in an hour from now. */
const spreadComparisons = (pool: Pool): Promise<unknown> =>
  withoutTimeout(pool, (connection) =>
    connection.query(
      `update exportd.interval_comparisons set next_due_at = clock_timestamp() + random() * interval '365 days'`,
    ),
  );

/** Builds all read models again from the first event, and switches to them. */
async function buildAndSwitch(pool: Pool, report: Report, signal: AbortSignal) {
  const startedAt = performance.now();
  let reportedAt = startedAt;
  const events = await buildProjections(pool, {
    restarts: true,
    onProgress: ({ events: folded, events_per_second }) => {
      signal.throwIfAborted();
      if (performance.now() - reportedAt < 10_000) return;
      reportedAt = performance.now();
      report(
        `${folded.toLocaleString('en')} events, ${Math.round(events_per_second).toLocaleString('en')} a second`,
      );
    },
  });
  const seconds = secondsSince(startedAt);
  const switchedAt = performance.now();
  const { locked_ms } = await switchProjections(pool);
  return {
    events,
    seconds,
    events_per_second: Math.round(events / seconds),
    switch_seconds: secondsSince(switchedAt),
    locked_ms,
  };
}

/** Does `work` while another thread appends. */
async function besideAppends<Result>(
  { databaseUrl }: ScratchStack,
  probe: { readonly exportId: string; readonly name: string },
  work: () => Promise<Result>,
) {
  const thread = new Worker(new URL('append_probe.ts', import.meta.url), {
    workerData: { databaseUrl, ...probe },
  });
  const ended = new Promise<number[]>((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
  ended.catch(() => undefined);
  const result = await work().finally(() => thread.postMessage('stop'));
  const times = (await ended).toSorted((left, right) => left - right);
  const at = (part: number): number => rounded(times[Math.floor((times.length - 1) * part)] ?? Number.NaN);
  return { result, append_ms: { count: times.length, median: at(0.5), p99: at(0.99), maximum: at(1) } };
}

const vacuumFull = (pool: Pool): Promise<unknown> =>
  withoutTimeout(pool, async (connection) => {
    const { rows } = await connection.query<{ name: string }>(
      `select relname::text as name from pg_class where relnamespace = 'exportd'::regnamespace and relkind = 'r'`,
    );
    for (const { name } of rows) await connection.query(`vacuum (full, analyze) exportd.${name}`);
  });

async function withoutTimeout<Result>(
  pool: Pool,
  work: (connection: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.connect();
  try {
    await connection.query('set statement_timeout = 0');
    return await work(connection);
  } finally {
    connection.release(true);
  }
}

interface TableSize {
  readonly table: string;
  readonly bytes: number;
}

/** The tables with more than an empty one has, with indexes, largest first. */
async function readSizes(pool: Pool): Promise<readonly TableSize[]> {
  const { rows } = await pool.query<TableSize>(
    `select relname::text as table, pg_total_relation_size(oid)::float8 as bytes from pg_class
     where relnamespace = 'exportd'::regnamespace and relkind = 'r' and pg_total_relation_size(oid) > 200000
     order by 2 desc`,
  );
  return rows;
}

interface RequestTimes {
  readonly request: string;
  readonly status: number;
  readonly median_ms: number;
  readonly maximum_ms: number;
}

/** Requests the pages of the console, and every path of the OpenAPI document that can be read. */
async function measureRequests(
  { settings }: Deployment,
  { teamId, apiKey }: BenchAccount,
  {
    exportId,
    start,
    repeat,
    pool,
    signal,
  }: {
    readonly exportId: string;
    readonly start: Date;
    readonly repeat: number;
    readonly pool: Pool;
    readonly signal: AbortSignal;
  },
) {
  const { rows } = await pool.query<{ run: string; backfill: string }>(
    `select (select id from exportd.batch_export_runs where batch_export_id = $1 limit 1) as run,
       (select id from exportd.backfills where batch_export_id = $1 limit 1) as backfill`,
    [exportId],
  );
  const ids: Readonly<Record<string, string>> = {
    batch_exports: exportId,
    runs: rows[0]?.run ?? '',
    backfills: rows[0]?.backfill ?? '',
    intervals: encodeURIComponent(start.toISOString()),
  };
  // Without a worker, which would start the schedules of all copies.
  const server = await startServer(settings, createLogger('bench', settings));
  let status = 0;
  const read = async (path: string): Promise<number> => {
    const response = await fetch(`${server.url}${path}`, {
      headers: { authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]),
    });
    const body = await response.arrayBuffer();
    ({ status } = response);
    if (status >= 500 || (status === 404 && path.includes(exportId)))
      throw new LaunchError(`GET ${path} responded ${String(status)}.`);
    return body.byteLength;
  };
  try {
    const measured: RequestTimes[] = [];
    const measure = async (request: string, paths: readonly string[]): Promise<void> => {
      const { median_ms, maximum_ms } = await measurePage(paths, repeat, read);
      measured.push({ request, status, median_ms, maximum_ms });
    };
    const project = `/api/projects/${String(teamId)}`;
    for (const [page, paths] of Object.entries(pageRequests(exportId, start.toISOString())))
      await measure(
        `page ${page}`,
        paths.map((path) => `${project}/${path}`),
      );
    const document = (await (await fetch(`${server.url}/api/docs/json`)).json()) as {
      readonly paths: Readonly<Record<string, object>>;
    };
    // A worker answers what is asked of a difference.
    const own = Object.keys(document.paths).filter(
      (path) => 'get' in (document.paths[path] ?? {}) && !/environments|live|stream|difference/.test(path),
    );
    for (const path of own)
      await measure(path, [
        path.replaceAll(/([^/{]+)\/\{(\w+)\}/g, (_, before: string, name: string) =>
          name === 'project_id'
            ? `${before}/${String(teamId)}`
            : `${before}/${ids[before] ?? '00000000-0000-4000-8000-000000000000'}`,
        ),
      ]);
    return measured.toSorted((left, right) => right.median_ms - left.median_ms);
  } finally {
    await server.close();
  }
}

/** Runs a pass of each reconciler, after another one that starts the schedules, and asks for due maintenance. */
async function measurePasses({ pool }: Scratch, { settings }: Deployment, report: Report) {
  report('Running the reconcilers');
  const journal = openJournal(pool);
  const temporal = await createClient(settings);
  const { client } = temporal;
  const policies = createPolicies(settings, configRules);
  const executionLists = createExecutionLists(client, settings);
  const loops = createReconcileLoops(
    {
      ...createWorkflowClients(client, pool, settings),
      journal,
      client,
      policies,
      executionLists,
      signalRecovery: createSignalRecovery(client, executionLists, journal, policies),
      ensureSearchAttributes: (signal) => ensureSearchAttributes(temporal, settings, signal),
      // No bucket is asked.
      openLocation: () => Promise.reject(new Error('The benchmark has no bucket.')),
      isIdle: () => false,
      settings,
      logger: createLogger('bench', settings),
    },
    reconcilers,
  );
  try {
    await loops.runOnce();
    await loops.runOnce();
    const passes = loops
      .statistics()
      .map(({ name, last_pass }) => ({ name, seconds: rounded(last_pass?.seconds ?? 0) }));
    const startedAt = performance.now();
    await readDueMaintenance(pool, policies.maintenance, []);
    return [...passes, { name: 'due maintenance', seconds: secondsSince(startedAt) }].toSorted(
      (left, right) => right.seconds - left.seconds,
    );
  } finally {
    await loops.stop();
    await client.connection.close();
  }
}

/**
 * Copies all tables to files of the database server, as pg_dump does, and from there into another database, whose indexes exist
 * already.
 */
async function measureBackup({ stack, pool, report }: Scratch) {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-years-'));
  // PostgreSQL may run as another user.
  chmodSync(folder, 0o777);
  const url = new URL(stack.databaseUrl);
  const database = `${url.pathname.slice(1)}_restored`;
  url.pathname = `/${database}`;
  try {
    const { rows } = await pool.query<{ name: string }>(
      `select relname::text as name from pg_class where relnamespace = 'exportd'::regnamespace and relkind = 'r'`,
    );
    const names = rows.map(({ name }) => name);
    const startedAt = performance.now();
    await withoutTimeout(pool, async (connection) => {
      for (const name of names) await connection.query(`copy exportd.${name} to '${folder}/${name}'`);
    });
    const seconds = secondsSince(startedAt);
    const bytes = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    await pool.query(`create database ${database}`);
    const restoredAt = performance.now();
    await migrateControl(url.href);
    const restored = createPool(url.href, { max: 1 });
    try {
      await withoutTimeout(restored, async (connection) => {
        await connection.query('set session_replication_role = replica');
        await connection.query(`truncate ${names.map((name) => `exportd.${name}`).join(', ')}`);
        for (const name of names) await connection.query(`copy exportd.${name} from '${folder}/${name}'`);
        await connection.query('analyze');
      });
      return { seconds, bytes, restore_seconds: secondsSince(restoredAt) };
    } finally {
      await restored.end();
      await pool.query(`drop database ${database} with (force)`);
    }
  } catch (error) {
    // The server of the environment may have other files, or refuse to write them.
    if (!(error instanceof pg.DatabaseError)) throw error;
    report(`No backup: ${error.message}`);
    return { skipped: error.message } satisfies Skipped;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Goal {
  readonly name: string;
  readonly value: string;
  readonly goal: string;
  readonly met: boolean;
}

const milliseconds = (value: number): string => `${value.toFixed(1)} ms`;

/** What the issue asks for, and whether it holds. */
function goalsOf({
  rebuild,
  rebuild_beside_appends,
  retention,
  requests,
}: YearsBenchResult): readonly Goal[] {
  const [slowest] = requests;
  const upper = (name: string, value: number, goal: number): Goal => ({
    name,
    value: milliseconds(value),
    goal: `≤ ${String(goal)} ms`,
    met: value <= goal,
  });
  return [
    {
      name: 'rebuild',
      value: `${rebuild.events_per_second.toLocaleString('en')} events/s`,
      goal: `≥ ${goals.events_per_second.toLocaleString('en')}`,
      met: rebuild.events_per_second >= goals.events_per_second,
    },
    upper('appends excluded by the switch', rebuild.locked_ms, goals.switch),
    upper(
      'slowest append beside a rebuild',
      rebuild_beside_appends.append_ms.maximum,
      goals.append_beside_rebuild,
    ),
    upper('slowest append beside retention', retention.append_ms.maximum, goals.append_beside_retention),
    upper(`slowest request: ${slowest?.request ?? '-'}`, slowest?.median_ms ?? 0, goals.request),
  ];
}

/** How many requests and passes the tables list. */
const listed = 10;

/** The result as tables. */
export function yearsTables(result: YearsBenchResult): readonly ResultTable[] {
  const { exports, runs, tables, rebuild, append_floor_ms, rebuild_beside_appends, retention } = result;
  const { requests, passes, backup } = result;
  const after = new Map(retention.tables.map(({ table, bytes }) => [table, bytes]));
  const count = (value: number): string => value.toLocaleString('en');
  const total = (sizes: readonly TableSize[]): number => sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  const sizeRow = (table: string, before: number, collapsed: number | undefined): string[] => [
    table,
    megabytes(before),
    count(Math.round(before / runs)),
    collapsed === undefined ? '-' : megabytes(collapsed),
    collapsed === undefined ? '-' : count(Math.round(collapsed / runs)),
  ];
  return [
    {
      title: `${count(exports)} exports, ${count(runs)} runs, ${count(rebuild.events)} events`,
      headings: ['goal', 'measured', 'bound', 'met'],
      rows: goalsOf(result).map(({ name, value, goal, met }) => [name, value, goal, met ? 'yes' : 'MISSED']),
    },
    {
      title: 'Sizes with indexes, before and after the collapse of all but ten runs of each export',
      headings: ['table', 'MB', 'bytes/run', 'MB after', 'bytes/run after'],
      rows: [
        ...tables.map(({ table, bytes }) => sizeRow(table, bytes, after.get(table))),
        sizeRow('all', total(tables), total(retention.tables)),
      ],
    },
    {
      title: 'Rebuild and retention',
      headings: [
        'work',
        'seconds',
        'events/s',
        'switch s',
        'excluded ms',
        'appends',
        'median ms',
        'p99 ms',
        'max ms',
      ],
      rows: [
        ['rebuild', rebuild, undefined] as const,
        ['rebuild beside appends', rebuild_beside_appends, rebuild_beside_appends.append_ms] as const,
      ]
        .map(([name, { seconds, events_per_second, switch_seconds, locked_ms }, appends]) => [
          name,
          String(seconds),
          count(events_per_second),
          String(switch_seconds),
          String(locked_ms),
          ...appendCells(appends),
        ])
        .concat([
          ['nothing beside appends', '-', '-', '-', '-', ...appendCells(append_floor_ms)],
          ['retention', String(retention.seconds), '-', '-', '-', ...appendCells(retention.append_ms)],
        ]),
    },
    {
      title: `The ${String(listed)} slowest of ${String(requests.length)} requests`,
      headings: ['request', 'status', 'median ms', 'max ms'],
      rows: requests
        .slice(0, listed)
        .map(({ request, status, median_ms, maximum_ms }) => [
          request,
          String(status),
          median_ms.toFixed(1),
          maximum_ms.toFixed(1),
        ]),
    },
    {
      title: 'The longest passes of reconcilers and maintenance',
      headings: ['pass', 'seconds'],
      rows: passes.slice(0, listed).map(({ name, seconds }) => [name, String(seconds)]),
    },
    {
      title: 'Backup by COPY',
      headings: ['backup s', 'MB', 'restore s'],
      rows: [
        'skipped' in backup
          ? ['skipped', '-', '-']
          : [String(backup.seconds), megabytes(backup.bytes), String(backup.restore_seconds)],
      ],
    },
  ];
}

const appendCells = (
  appends:
    | { readonly count: number; readonly median: number; readonly p99: number; readonly maximum: number }
    | undefined,
): string[] =>
  appends
    ? [
        appends.count.toLocaleString('en'),
        ...[appends.median, appends.p99, appends.maximum].map((value) => value.toFixed(1)),
      ]
    : ['-', '-', '-', '-'];
