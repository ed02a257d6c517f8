/** A tenant who owns a bucket with all of its bytes, and three others on the same server and worker. */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { Client, Connection } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { insertLargeEvents } from '../e2e/large_events.ts';
import { insertEvents } from '../e2e/rows.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { serverAt, watchProcess, workerAt } from '../setup/process_watch.ts';
import { waitFor } from '../setup/wait_for.ts';
import { startHostilePerson } from './hostile_person.ts';
import { createHostileStore } from './hostile_bucket.ts';
import { watchMemory } from './process_memory.ts';
import { createTenant, type Tenant } from './tenant.ts';

const minute = 60_000;
/** Of the attack. The campaign of a release lasts an hour. */
const attackMs = Number(process.env.EXPORTD_TEST_CAMPAIGN_MINUTES ?? 3) * minute;
/** Without the attack: at least an interval of each export of a minute. */
const aloneMs = Math.max(1.5 * minute, attackMs / 6);

const hours = 12;
/** A backfill of an honest export: hours, and rows of each. */
const [backfilledHours, rowsOfHour] = [3, 4_000];
/** How much later than alone an interval may be: by this factor, and by a poll of each wait of a run, in seconds. */
const [factor, polls] = [3, 2];
const maxWorkerMiB = 1_000_000_000 / 1_048_576;
/** Of the longest silence of a process, without what other processes take of the cores. */
const maxSilentMs = 1_000;

interface Honest {
  readonly tenant: Tenant;
  readonly hourly: string;
  readonly minutely: string;
}

/** A backfilled interval, and the seconds from the request until it was exported. */
interface BackfilledInterval {
  readonly hourly: string;
  readonly askedAt: Date;
  readonly seconds: number;
}

/** Seconds from when an interval could be exported until it was. */
interface Lateness {
  readonly backfill: readonly BackfilledInterval[];
  readonly schedule: readonly number[];
}

let stack: Stack;
let port: number;
let bucket: TestBucket;
let store: Awaited<ReturnType<typeof createHostileStore>>;
let honest: Honest[];
let hostile: Tenant;
let hostileExports: readonly [string, ...string[]];
/** Objects of others in the bucket, beside the prefix of the hostile tenant. */
const canaries = [
  'backups/db.dump',
  'hostile-not/events.jsonl',
  'hostile.json',
  '_manifests/all.json',
] as const;
const prefix = 'hostile/';

beforeAll(async () => {
  const folder = fromSetUp('EXPORTD_TEST_FOLDER');
  ({ worker: port } = await assignPorts(join(folder, `${randomUUID()}.ports.json`), ['worker']));
  bucket = await createBucket();
  for (const Key of canaries)
    await bucket.client.send(new PutObjectCommand({ Bucket: bucket.bucket, Key, Body: `canary ${Key}` }));
  stack = await startStack(
    'hostile-tenant',
    {
      EXPORTD_WORKER_HTTP_PORT: String(port),
      // Files are deleted and intervals compared during the campaign.
      EXPORTD_OLD_GENERATION_RETENTION: '10s',
      EXPORTD_ORPHAN_RETENTION: '20s',
      EXPORTD_MAINTENANCE_INTERVAL: '5s',
      EXPORTD_COMPARISON_FIRST: '30s',
      // As in production: the tests' half a minute is longer than any lateness that is allowed here.
      EXPORTD_WORKFLOW_TASK_TIMEOUT: '10s',
      // As the image and the units have it.
      NODE_OPTIONS: '--max-semi-space-size=8',
      MALLOC_ARENA_MAX: '2',
      MALLOC_MMAP_THRESHOLD_: '262144',
    },
    { bucket },
  );
  honest = [];
  for (const name of ['ann', 'bob', 'eve']) {
    const tenant = await createTenant(stack, name, bucket);
    for (let hour = hours; hour > 0; hour -= 1)
      await insertEvents(stack.pool, tenant.projectId, hourAgo(hour), rowsOfHour);
    honest.push({
      tenant,
      hourly: await tenant.createExport({ end_at: hourAgo(0).toISOString() }, { prefix: `${name}/hourly` }),
      minutely: await tenant.createExport({ interval: 'every 1 minutes' }, { prefix: `${name}/minutely` }),
    });
  }
  const [, eve] = honest;
  store = await createHostileStore(bucket, prefix, {
    endpoint: bucket.endpoint,
    bucket: bucket.bucket,
    keys: [...canaries, `bob/hourly/_manifests/${eve?.hourly}/${compactHour(1)}-${compactHour(0)}.json`],
  });
  const hostileBucket = { ...bucket, endpoint: store.proxy.endpoint };
  hostile = await createTenant(stack, 'mallory', hostileBucket);
  for (let hour = hours; hour > 0; hour -= 1)
    await insertEvents(stack.pool, hostile.projectId, hourAgo(hour), 1_000);
  await insertLargeEvents({ pool: stack.pool, projectId: hostile.projectId }, hourAgo(2), 1_050);
  const fields = { end_at: hourAgo(0).toISOString() };
  const table = { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' };
  hostileExports = [
    await hostile.createExport(fields, { prefix: `${prefix}lines` }),
    await hostile.createExport(fields, { prefix: `${prefix}plain`, compression: null }),
    await hostile.createExport(fields, { prefix: `${prefix}table`, ...table }),
    await hostile.createExport(fields, { prefix: `${prefix}another_table`, ...table }),
  ];
});
afterAll(async () => {
  await stack.stop();
  await store.proxy.close();
});

const compactHour = (hours: number): string =>
  hourAgo(hours)
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, '');

/** Runs, with the ends of their intervals and of their own. */
async function runsWhere(where: string, ...values: readonly unknown[]) {
  const { rows } = await stack.pool.query<{ ended_at: Date; finished_at: Date | null; status: string }>(
    `select data_interval_end as ended_at, finished_at, status from exportd.batch_export_runs where ${where}`,
    [...values],
  );
  return rows;
}

const secondsBetween = (from: Date, to: Date): number =>
  (new Date(to).getTime() - new Date(from).getTime()) / 1_000;

/** Backfills hours of an honest export. */
async function backfillHours({ tenant, hourly }: Honest, round: number): Promise<BackfilledInterval[]> {
  const first = hours - ((round * backfilledHours) % hours);
  const askedAt = new Date();
  const { status, text } = await tenant.call('POST', `/batch_exports/${hourly}/backfill/`, {
    start_at: hourAgo(first).toISOString(),
    end_at: hourAgo(first - backfilledHours).toISOString(),
    // Each round writes files: an unchanged interval would publish nothing.
    rewrite: true,
  });
  if (status !== 200) throw new Error(`The backfill was refused: ${text}`);
  const runs = await waitFor(
    async () => {
      const found = await runsWhere('batch_export_id = $1 and created_at >= $2', hourly, askedAt);
      return found.length === backfilledHours && found.every(({ status: of }) => of === 'Completed') && found;
    },
    () => `round ${round} of ${hourly} completes`,
    10 * minute,
  );
  return runs.map(({ finished_at }) => ({
    hourly,
    askedAt,
    seconds: secondsBetween(askedAt, finished_at ?? new Date()),
  }));
}

/** Inserts rows at the time of their transaction, which the barrier of the interval waits for. */
const insertNow = ({ projectId }: Tenant): Promise<unknown> =>
  stack.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), '$pageview', 'person', gen_random_uuid(), '{}', now(), now(), now() from generate_series(1, 10)`,
    [projectId],
  );

/** Lets the honest tenants export for some time. Each minute has rows. */
async function exportHonestly(forMs: number): Promise<Lateness> {
  const startedAt = new Date();
  const until = performance.now() + forMs;
  const backfill: BackfilledInterval[] = [];
  await Promise.all(
    honest.map(async (of) => {
      for (let round = 0; performance.now() < until; round += 1) {
        await insertNow(of.tenant);
        backfill.push(...(await backfillHours(of, round)));
      }
    }),
  );
  const endedAt = new Date();
  const schedule: number[] = [];
  for (const { minutely } of honest) {
    const runs = await waitFor(async () => {
      const found = await runsWhere(
        'batch_export_id = $1 and backfill_id is null and data_interval_end between $2 and $3',
        minutely,
        startedAt,
        endedAt,
      );
      const expected = Math.floor(endedAt.getTime() / minute) - Math.floor(startedAt.getTime() / minute);
      return found.length >= expected && found.every(({ status }) => status === 'Completed') && found;
    }, 'the intervals of each minute are exported');
    schedule.push(
      ...runs.map(({ ended_at, finished_at }) => secondsBetween(ended_at, finished_at ?? endedAt)),
    );
  }
  return { backfill, schedule };
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
const secondsOf = (backfilled: readonly BackfilledInterval[]): number[] =>
  backfilled.map(({ seconds }) => seconds);
const figuresOf = ({ backfill, schedule }: Lateness) => ({
  'median of backfills': median(secondsOf(backfill)),
  'maximum of backfills': Math.max(...secondsOf(backfill)),
  'median of the schedule': median(schedule),
  'maximum of the schedule': Math.max(...schedule),
});

const tagsOf = (keys: readonly string[]): Promise<(string | undefined)[]> =>
  Promise.all(
    keys.map(
      async (Key) => (await bucket.client.send(new HeadObjectCommand({ Bucket: bucket.bucket, Key }))).ETag,
    ),
  );

/** Attacks while something runs: by the answers of the store, by its objects, and by what a person asks. */
async function attackDuring<Result>(work: () => Promise<Result>) {
  const person = startHostilePerson(hostile, {
    exports: hostileExports,
    bucket: { ...bucket, endpoint: store.proxy.endpoint },
    prefix: `${prefix}asked`,
    hours,
    requests: 4,
  });
  store.attack();
  const planting = new AbortController();
  let planted = 0;
  const planter = (async () => {
    for (; !planting.signal.aborted; planted += 1) {
      await store.plant();
      await delay(500);
    }
  })();
  try {
    const result = await work();
    return { result, answered: person.answered, planted };
  } finally {
    planting.abort();
    await Promise.all([planter, person.stop()]);
    store.pause();
  }
}

/**
 * What happened from the request of the slowest backfill on, with seconds since then: to its command, to its last run in the
 * journal, and to the workflow of that.
 */
async function slowestOf({ backfill }: Lateness): Promise<readonly string[]> {
  const [slowest] = backfill.toSorted((one, other) => other.seconds - one.seconds);
  if (!slowest) return [];
  const { hourly, askedAt } = slowest;
  const { rows: commands } = await stack.pool.query<{ created_at: Date; decided_at: Date }>(
    `select created_at, decided_at from exportd.commands
     where batch_export_id = $1 and created_at >= $2 and decided_at is not null order by created_at limit 1`,
    [hourly, askedAt],
  );
  const { rows: runs } = await stack.pool.query<{ id: string }>(
    `select id from (
       select id, finished_at from exportd.batch_export_runs
       where batch_export_id = $1 and created_at >= $2 order by created_at limit $3) of_backfill
     order by finished_at desc limit 1`,
    [hourly, askedAt, backfilledHours],
  );
  const { rows: recorded } = await stack.pool.query<{ type: string; at: Date }>(
    'select event_type as type, recorded_at as at from exportd.journal_events where stream_id = $1',
    [runs[0]?.id],
  );
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const { workflow } = new Client({ connection });
  const events: temporal.api.history.v1.IHistoryEvent[] = [];
  for await (const { workflowId, runId } of workflow.list({ query: `ExportdRun = '${runs[0]?.id}'` }))
    events.push(...((await workflow.getHandle(workflowId, runId).fetchHistory()).events ?? []));
  await connection.close();
  const types = Object.entries(temporal.api.enums.v1.EventType);
  return [
    ...commands.flatMap(({ created_at, decided_at }) => [
      { type: 'command stored', at: created_at },
      { type: 'command decided', at: decided_at },
    ]),
    ...recorded,
    ...events.map(({ eventType, eventTime }) => ({
      type: types.find(([, type]) => type === eventType)?.[0] ?? 'unknown',
      at: new Date(Number(eventTime?.seconds ?? 0) * 1_000 + (eventTime?.nanos ?? 0) / 1e6),
    })),
  ]
    .map(({ type, at }) => ({ type, seconds: secondsBetween(askedAt, at) }))
    .toSorted((one, other) => one.seconds - other.seconds)
    .map(({ type, seconds }) => `${seconds.toFixed(1)} ${type}`)
    .concat(await temporalSaid(askedAt));
}

/** What the Temporal server logged in the minute after a time. It says why a task was lost. */
async function temporalSaid(since: Date): Promise<readonly string[]> {
  const lines = (
    await readFile(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'logs', 'temporal.log'), 'utf8')
  ).split('\n');
  const times = [since, new Date(since.getTime() + 60_000)].map((at) => at.toISOString());
  return lines.filter((line) => {
    const [at] = /\d{4}-\d\d-\d\dT[\d:.]+/.exec(line) ?? [];
    return at !== undefined && at >= (times[0] ?? '') && at <= (times[1] ?? '');
  });
}

const table = (of: ReadonlyMap<string, number>): string =>
  [...of]
    .toSorted()
    .map(([name, times]) => `  ${times} × ${name}`)
    .join('\n');

it('costs no other tenant their time, memory or objects', async () => {
  const before = await tagsOf(canaries);
  // What a worker loads once delays no measured run.
  await Promise.all(honest.map((of) => backfillHours(of, 0)));
  const exportedAlone = await exportHonestly(aloneMs);
  const alone = figuresOf(exportedAlone);
  const memory = watchMemory(stack.workers[0]?.pid ?? 0);
  const {
    result: server,
    answered,
    planted,
  } = await attackDuring(() =>
    watchProcess(serverAt(stack.baseUrl), () => watchProcess(workerAt(port), () => exportHonestly(attackMs))),
  );
  const worker = server.result;
  const attacked = figuresOf(worker.result);
  const figures = {
    alone,
    slowestAlone: await slowestOf(exportedAlone),
    attacked,
    backfilled: worker.result.backfill.length,
    peakMiB: await memory.stop(),
    silentMs: { server: server.silentMs, worker: worker.silentMs },
    slowest: await slowestOf(worker.result),
    planted,
    requests: store.proxy.requests.length,
  };
  process.stdout.write(
    `${JSON.stringify(figures, null, 2)}\nAnswers of the store:\n${table(store.given)}\nAnswers to the person:\n${table(answered)}\n`,
  );
  for (const id of hostileExports) await hostile.call('DELETE', `/batch_exports/${id}/`);
  await waitFor(async () => {
    const active = await runsWhere(
      `batch_export_id = any($1) and status in ('Starting', 'Running')`,
      hostileExports,
    );
    return active.length === 0;
  }, 'the runs of the hostile tenant end');
  expect(store.outside).toEqual([]);
  expect(await tagsOf(canaries)).toEqual(before);
  for (const { hourly, minutely } of honest)
    for (const id of [hourly, minutely]) expect((await verifyExport(stack, id)).findings).toEqual([]);
  expect([...answered.keys()].filter((name) => name.endsWith(' 500'))).toEqual([]);
  const isLate = (name: keyof typeof alone): boolean => attacked[name] > factor * alone[name] + polls;
  const late = (Object.keys(alone) as (keyof typeof alone)[]).filter(isLate);
  expect(late).toEqual([]);
  expect(figures.peakMiB.own).toBeLessThan(maxWorkerMiB);
  expect(Math.max(...Object.values(figures.silentMs))).toBeLessThan(maxSilentMs);
}, 7_200_000);
