import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ActivityContext } from '../../activities/run_step.ts';
import { createRunActivities } from '../../activities/run.ts';
import { storeConfig } from '../../src/destination/config_versions.ts';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { createSmallRunCompleter } from '../../src/export/complete_small_run.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { createRunTurns } from '../../src/export/run_turns.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import type { Policies } from '../../src/decisions/policies.ts';
import type { StartableRun } from '../../src/decisions/startable_runs.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { readRuns } from '../decisions/read_runs.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { createExportHarness, type ExportHarness, insertEvents } from './export_harness.ts';
import { costByPlace, costOf, recordStatements } from './statement_recorder.ts';
import { knowTraits } from './stores.ts';
import { createOutages } from '../../src/failures/outages.ts';

/**
 * What a run may cost: exactly that, so that what costs less is noticed too. Change the numbers, and say why in the commit.
 * Without what a deployment does beside its runs.
 */
const costs = {
  'of 20 rows': { statements: 36, commits: 10 },
  'without rows': { statements: 26, commits: 7 },
} as const;

let harness: ExportHarness;
let recorder: ReturnType<typeof recordStatements>;
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const hours = (first: number, count: number) => ({
  start_at: new Date(Date.UTC(2026, 0, 1, first)).toISOString(),
  end_at: new Date(Date.UTC(2026, 0, 1, first + count)).toISOString(),
});
const rowsOfHour = 20;
/** The first hour that has rows, and the first that has none. */
const [withRows, withoutRows] = [10, 30];
/** Runs before the one that is measured, for connections, and for what is read once. */
const earlierRuns = 3;

beforeAll(async () => {
  // Before the first connection.
  recorder = recordStatements();
  harness = await createExportHarness();
  for (let hour = withRows; hour <= withRows + earlierRuns + 1; hour += 1)
    await insertEvents(harness.database.pool, rowsOfHour, hours(hour, 1).start_at);
});
afterAll(async () => {
  recorder.stop();
  await harness.close();
});

const localContext = (): ActivityContext => ({
  heartbeat: () => undefined,
  cancellationSignal: new AbortController().signal,
  info: { attempt: 1, isLocal: true, scheduledTimestampMs: Date.now(), scheduleToCloseTimeoutMs: 60_000 },
});

/**
 * The activities of a worker, whose statements are recorded.
 * @param started receives the runs that the end of one has started
 */
function createActivities(policies: Policies, started: StartableRun[]) {
  const { database, journal, keyRing, settings, source, readSelection } = harness;
  const { pool } = database;
  const outages = createOutages(pool, settings, logger);
  const ofRuns = recorder.named('RunRecorder', harness.recorder);
  const openDestination = createDestinationOpener(pool, keyRing, settings, outages.circuits);
  const { openLocation, mayShrink, targets, memory } = harness;
  const encoders = { ...harness.encoders, pageThreads: recorder.threads(harness.encoders.pageThreads) };
  const exporting = {
    recorder: ofRuns,
    source,
    encoders,
    memory,
    readSelection,
    openDestination,
    openLocation,
  };
  const perExportLimit = createPerExportLimit(Infinity);
  const completing = { ...exporting, perExportLimit, mayShrink, targets, settings, logger };
  const wakes = { wake: () => Promise.resolve() };
  return createRunActivities({
    journal,
    policies,
    recorder: ofRuns,
    source,
    readSelection,
    completeSmallRun: createSmallRunCompleter(completing),
    turns: createRunTurns(),
    outages,
    runs: {
      describe: () => '',
      startAll: (runs) => {
        started.push(...runs);
        return Promise.resolve(0);
      },
    },
    schedules: wakes,
    backfills: wakes,
    context: localContext,
    logger,
    settings,
  });
}

/** Backfills hours one after another: the end of each run starts the next. @returns what each run cost, with the next one's start */
async function backfillHours(first: number) {
  const { database, bucket, journal, keyRing, settings } = harness;
  const batchExportId = randomUUID();
  await inTransaction(database.pool, (connection) =>
    storeConfig(
      connection,
      { keyRing, settings },
      {
        batch_export_id: batchExportId,
        destination_type: 'S3',
        config: configOf(bucket, { prefix: batchExportId }),
      },
    ),
  );
  const policies = quickPolicies({ EXPORTD_BACKFILL_CONCURRENCY: '1' });
  const commander = createCommander(journal, policies, batchExportId);
  await commander.create({ interval: 'hour' });
  const { command } = await commander.command('backfill', hours(first, earlierRuns + 2));
  const backfill_id = command.outcome?.backfill_id ?? '';
  const { start_runs } = await advanceBackfill(journal, policies, backfill_id);
  const started = [...start_runs];
  const activities = createActivities(policies, started);
  const costsOfRuns = [];
  for (const { run_id } of started) {
    recorder.take();
    const { ended } = await recorder.inStep('the run', () =>
      activities.exportWhenSettled({ run_id, state: { phase: 'settling' }, order: { project: '1' } }),
    );
    expect(ended).toEqual({ status: 'Completed', latest_error: null, rows: expect.any(Number) });
    costsOfRuns.push(recorder.take());
  }
  const runs = await readRuns(database.pool, { batch_export_id: batchExportId });
  expect(runs.map(({ status }) => status)).toEqual(runs.map(() => 'Completed'));
  expect(runs).toHaveLength(earlierRuns + 2);
  // The end of the last one starts none.
  return costsOfRuns.slice(0, -1);
}

describe('the statements of a run', () => {
  it.each([
    ['of 20 rows', withRows],
    ['without rows', withoutRows],
  ] as const)('%s are as few as they were, by place', async (kind, first) => {
    await knowTraits(harness, harness.bucket, { conditional_put: true, checksums: true });
    // What is read and written every five seconds, whatever the number of runs.
    const sent =
      (await backfillHours(first)).at(-1)?.filter(({ place }) => !place.includes('circuit_store.ts')) ?? [];
    expect(costByPlace(sent)).toMatchSnapshot();
    const { statements, commits } = costOf(sent);
    expect({ statements, commits }).toEqual(costs[kind]);
  });
});
