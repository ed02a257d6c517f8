/** Exports whose source loses rows after they were exported, for the tests of what a person decides about them. */
import { afterAll, beforeAll, expect } from '@jest/globals';
import { exportd } from '../cli/command_line.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type MonitoredStack, scrape, startMonitoredStack } from './monitored_stack.ts';
import { exportedUuids, insertEvents, sourceUuids } from './rows.ts';
import type { RunResponse } from './stack.ts';

/** How a difference is found: a run that would have removed rows, a comparison by the maintenance, or a verification. */
export const kinds = ['held', 'comparison', 'verification'] as const;
export type Kind = (typeof kinds)[number];

/** Nine in each bucket of a fingerprint, so that rows that are deleted or come back share one with others. */
export const rows = 600;
export const deleted = 4;
export let stack: MonitoredStack;
/** The hours of the tests, of which each has its own. */
let hours = 3;

/** Starts a stack for the tests of the file. */
export function useStack(name: string, settings: Record<string, string> = {}): void {
  beforeAll(async () => {
    stack = await startMonitoredStack(name, {
      settings: {
        EXPORTD_OLD_GENERATION_RETENTION: '0s',
        EXPORTD_MAINTENANCE_INTERVAL: '1s',
        // A pass tells webhooks of a difference, unless that ended since the former pass.
        EXPORTD_RECONCILE_INTERVAL: '5s',
        ...settings,
      },
    });
  });
  afterAll(() => stack.stop());
}

const environment = () => ({ EXPORTD_BASE_URL: stack.baseUrl, EXPORTD_API_KEY: stack.key });
export const cli = (...args: readonly string[]) => exportd(environment(), ...args);

/** An export of one hour of the source, of which the rows of its first minutes are deleted. */
interface Exported {
  readonly id: string;
  readonly start: string;
  readonly end: string;
  readonly path: string;
  /** What was exported. */
  readonly uuids: readonly string[];
}

export const newestRun = async ({ id }: Pick<Exported, 'id'>, status: string): Promise<RunResponse> =>
  waitFor(async () => {
    const [newest] = await stack.runs(id);
    return newest?.status === status ? newest : undefined;
  }, `the newest run is ${status}`);

export async function exportHour(config: Record<string, unknown> = {}): Promise<Exported> {
  const [start, end] = [hourAgo(hours), hourAgo(hours - 1)];
  hours += 1;
  await insertEvents(stack.pool, stack.projectId, start, rows);
  const id = await stack.createExport({}, config);
  const range = { start_at: start.toISOString(), end_at: end.toISOString() };
  expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
  const run = await newestRun({ id }, 'Completed');
  return {
    id,
    start: range.start_at,
    end: range.end_at,
    path: `/batch_exports/${id}/intervals/${range.start_at}`,
    uuids: config.table_format === undefined ? await exportedUuids(stack.bucket, run.manifest_key) : [],
  };
}

/** Deletes the first rows that the source still has. @returns their ids */
export async function deleteRows({ start }: Exported, count: number): Promise<string[]> {
  const { rows: found } = await stack.pool.query<{ uuid: string }>(
    `delete from events where uuid in (
       select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at limit $3) returning uuid`,
    [stack.projectId, start, count],
  );
  return found.map(({ uuid }) => uuid).sort();
}

export const retry = async (exported: Exported): Promise<void> => {
  const [newest] = await stack.runs(exported.id);
  const retried = await stack.call('POST', `/batch_exports/${exported.id}/runs/${newest?.id}/retry/`);
  expect(retried.status).toBe(200);
};

export const intervalOf = async ({ path }: Exported) =>
  (await stack.call('GET', `${path}/`)).body as {
    interval: Record<string, unknown> & {
      manifest_run_id: string;
      comparison: Record<string, unknown> | null;
    };
    newest_check: { kind: string; is_equal: boolean };
  };

/** Makes a comparison of the current files due, and waits until it was made. A repair may replace them meanwhile. */
export async function compare(exported: Exported): Promise<void> {
  const { rows: clock } = await stack.pool.query<{ now: string }>('select clock_timestamp() as now');
  await waitFor(async () => {
    // One that has begun before sets when the next one is due.
    const { rowCount } = await stack.pool.query(
      `update exportd.interval_comparisons set next_due_at = clock_timestamp() - interval '1 year'
       where run_id = $1 and coalesce(last_compared_at < $2, true)`,
      [(await intervalOf(exported)).interval.manifest_run_id, clock[0]?.now],
    );
    return rowCount === 0;
  }, 'the comparison');
}

export async function verify({ path }: Exported): Promise<void> {
  expect((await stack.call('POST', `${path}/verifications/`, {})).status).toBe(202);
  await waitFor(async () => {
    const { body } = await stack.call('GET', `${path}/verifications/`);
    return (body.results as { status: string }[]).every(({ status }) => status === 'completed');
  }, 'the verification');
}

/** Runs `exportd verify`. @throws Error with what it printed when it finds something */
export async function verifyCommand({ id }: Exported, option: '--fast' | '--deep'): Promise<void> {
  const { code, stdout, stderr } = await exportd(stack.environment, 'verify', id, option);
  if (code !== 0) throw new Error(`exportd verify failed: ${stdout}${stderr}`);
}

/** Lets the difference be found. */
export async function find(exported: Exported, kind: Kind): Promise<void> {
  if (kind === 'comparison') await compare(exported);
  if (kind === 'verification') await verify(exported);
  if (kind !== 'held') return;
  await retry(exported);
  await newestRun(exported, 'Failed');
}

export const conditionOf = async ({ id }: Exported) =>
  (await stack.call('GET', `/batch_exports/${id}/`)).body.condition as {
    cause: string;
    severity: string;
    actions: { command: string; method: string; path: string }[];
  };

const ringsOnApi = async (exported: Exported): Promise<boolean> =>
  (await conditionOf(exported)).severity !== 'ok';

async function ringsInMetrics(): Promise<boolean> {
  const metrics = await scrape(stack.serverUrl);
  const sum = (name: string): number =>
    [...metrics.matchAll(new RegExp(`^${name}{.*} (\\d+)$`, 'gm'))].reduce(
      (total, [, value]) => total + Number(value),
      0,
    );
  return sum('exportd_held_intervals') + sum('exportd_differing_intervals') > 0;
}

/** Whether the export rings on the API, in the list, on the command line and in metrics. */
async function rings(exported: Exported): Promise<Record<string, boolean>> {
  const listed = (await stack.call('GET', '/batch_exports/?limit=100')).body.results as {
    id: string;
    condition: { severity: string };
  }[];
  const status = await cli('status');
  const { newest_check } = await intervalOf(exported);
  return {
    api: await ringsOnApi(exported),
    list: listed.find(({ id }) => id === exported.id)?.condition.severity !== 'ok',
    cli: status.code !== 0,
    metrics: await ringsInMetrics(),
    page: !newest_check.is_equal,
  };
}
const everywhere = { api: true, list: true, cli: true, metrics: true, page: true };
const nowhere = { api: false, list: false, cli: false, metrics: false, page: false };

/**
 * Waits for the API first, and then for metrics, which are made once a second at most: to ask all surfaces again and again
 * meanwhile took more CPU time than what is tested.
 */
async function until(exported: Exported, expected: typeof everywhere, what: string): Promise<void> {
  await waitFor(async () => (await ringsOnApi(exported)) === expected.api, what);
  await waitFor(async () => (await ringsInMetrics()) === expected.metrics, what);
  await waitFor(async () => JSON.stringify(await rings(exported)) === JSON.stringify(expected), what);
}
export const untilQuiet = (exported: Exported) => until(exported, nowhere, 'no surface has an alarm');
export const untilLoud = (exported: Exported) => until(exported, everywhere, 'all surfaces have the alarm');

/** Runs `exportd export difference` for an interval. */
export const difference = (
  { id, start }: { readonly id: string; readonly start: string },
  ...options: readonly string[]
) => cli('export', 'difference', id, start, ...options);

/** The newest files of the interval, which a backfill that changed nothing did not replace. */
export async function currentUuids(exported: Exported): Promise<string[]> {
  const { interval } = await intervalOf(exported);
  const run = (await stack.runs(exported.id)).find(({ id }) => id === interval.manifest_run_id);
  return exportedUuids(stack.bucket, run?.manifest_key ?? null);
}

export const sourceUuidsOf = ({ start, end }: Exported) =>
  sourceUuids(stack.pool, stack.projectId, start, end);

/** Deletes rows, and returns what puts the first `count` of them back as they were. */
export async function deleteAndStore(exported: Exported, count: number) {
  const stored = `deleted_${hours}_${count}`;
  await stack.pool.query(
    `create table ${stored} as select * from events
     where team_id = ${stack.projectId} and inserted_at >= '${exported.start}' order by inserted_at limit ${count}`,
  );
  const uuids = await deleteRows(exported, count);
  const restore = (rows: number) =>
    stack.pool.query(`insert into events select * from ${stored} order by inserted_at limit ${rows}`);
  return { uuids, restore };
}

/** Inserts rows into a minute of the interval after it was exported. */
export const insertLateRows = ({ start }: Exported, count: number, minute = 30): Promise<void> =>
  insertEvents(stack.pool, stack.projectId, new Date(Date.parse(start) + minute * 60_000), count, 50);

/** Compares, verifies and exports again what a person has decided about: nothing rings, and `exportd verify` agrees. */
export async function expectSettled(exported: Exported, files: readonly string[]): Promise<void> {
  await compare(exported);
  await verify(exported);
  await retry(exported);
  await newestRun(exported, 'Completed');
  await untilQuiet(exported);
  expect(await currentUuids(exported)).toEqual(files.toSorted());
  await verifyCommand(exported, '--deep');
}
