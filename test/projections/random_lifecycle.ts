import fc from 'fast-check';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { readObsoleteObjects, recordDeletions } from '../../src/decisions/due_maintenance.ts';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import {
  isChanged,
  readDueBatch,
  readDueGroups,
  recordComparison,
  recordUnchanged,
} from '../../src/decisions/comparisons.ts';
import {
  readOpenedRuns,
  readUnsettledRuns,
  recordBarrier,
  recordSettled,
  type SettlingDecision,
} from '../../src/decisions/unsettled_runs.ts';
import { compareFingerprints } from '../../src/domain/comparison.ts';
import { attemptOf } from '../../src/domain/run.ts';
import type { ExistingRun } from '../../src/domain/run_state.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLaggingExport } from '../decisions/lagging_export.ts';
import { createCommander, minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns, fileOf, unknownManifest } from '../decisions/simulated_runs.ts';
import { createTestDatabase } from '../setup/database.ts';
import { recordReplacement } from '../decisions/replacements.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';

const policies = quickPolicies({
  EXPORTD_RUN_RETRY_INITIAL: '0s',
  EXPORTD_RUN_RETRY_LIMIT: '1',
  EXPORTD_OLD_GENERATION_RETENTION: '0s',
  EXPORTD_ORPHAN_RETENTION: '0s',
  EXPORTD_COMPARISON_FIRST: '1ms',
  EXPORTD_COMPARISON_MAX_INTERVAL: '1ms',
});

const key = (id: string) => ({ inserted_at: '2026-11-01T10:00:00.000000Z', id });

/** Whether a step was too late. Nothing is recorded then. */
const isLost = (error: unknown): boolean =>
  error instanceof Error &&
  ['RunEnded', 'GenerationSuperseded', 'RangeError', 'CommandRejected'].includes(error.name);

/** Creates a lagging export in a dedicated database, with all actions of commands and runs on it. */
export async function startLifecycle() {
  const database = await createTestDatabase();
  const { pool } = database;
  const journal = openJournal(pool);
  const recorder = createRunRecorder(journal);
  const commander = createCommander(journal, policies);
  const { batchExportId, command } = commander;
  await createLaggingExport(journal, batchExportId, 4);
  await command('unpause');
  await pool.query(
    `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
     values ($1, 1, 'S3', '{"bucket_name": "bucket"}')`,
    [batchExportId],
  );

  const readIds = async (sql: string): Promise<string[]> =>
    (await pool.query<{ id: string }>(sql)).rows.map(({ id }) => id);
  const activeRuns = () =>
    readIds(
      `select id from exportd.batch_export_runs where status in ('Starting', 'Running') order by position`,
    );
  const oneOf = (ids: readonly string[], choice: number): string | undefined => ids[choice % ids.length];

  const ignoringLostRuns = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!isLost(error)) throw error;
    }
  };
  const withRun = async (choice: number, work: (id: string, run: ExistingRun) => Promise<unknown>) => {
    const id = oneOf(await activeRuns(), choice);
    if (id !== undefined) await ignoringLostRuns(async () => work(id, await recorder.readActive(id)));
  };
  const uploadOf = (run: ExistingRun, range: number) => run.ranges[range]?.upload ?? undefined;

  const retriable = (): Promise<string[]> =>
    readIds(`select run_id as id from exportd.intervals
      where manifest_run_id is null and run_id is not null and status <> 'running' order by data_interval_start`);
  const terminate = (id: string) =>
    endRun(journal, policies, id, { status: 'Terminated', latest_error: 'Test: another run follows.' });
  const simulated = createSimulatedRuns(journal, recorder, commander);
  /** Completes a run from its first step, or ends it if it has done other steps before. */
  const publish = async (id: string): Promise<void> => {
    try {
      await simulated.publish(id, await simulated.start(id), id, 1);
    } catch (error) {
      if (!isLost(error)) throw error;
      await terminate(id);
    }
  };

  return {
    database,
    journal,
    batchExportId,
    /** As if all pauses ended, workers did all work, and people retried what has failed. */
    exportWhatIsOwed: async () => {
      await command('unpause');
      for (const id of await activeRuns()) await terminate(id);
      for (let isDone = false; !isDone;) {
        for (const id of await readIds('select id from exportd.backfills where finished_at is null')) {
          await command('unpauseBackfill', { backfill_id: id });
          await advanceBackfill(journal, policies, id);
        }
        await commander.step();
        const active = await activeRuns();
        for (const id of active) await publish(id);
        const failed = active.length > 0 ? [] : await retriable();
        for (const id of failed) await command('retry', { run_id: id });
        isDone = active.length === 0 && failed.length === 0;
      }
    },
    command: async (
      name: Parameters<typeof command>[0],
      body: Record<string, unknown> = {},
    ): Promise<void> => {
      await command(name, body);
    },
    schedule: async () => {
      await commander.step();
    },
    onRun: async (name: 'cancelRun' | 'retry', choice: number) => {
      const id = oneOf(await readIds('select id from exportd.batch_export_runs order by position'), choice);
      if (id !== undefined) await command(name, { run_id: id });
    },
    onBackfill: async (name: 'cancelBackfill' | 'pauseBackfill' | 'unpauseBackfill', choice: number) => {
      const id = oneOf(await readIds('select id from exportd.backfills order by position'), choice);
      if (id !== undefined) await command(name, { backfill_id: id });
    },
    stepBackfills: async () => {
      for (const id of await readIds('select id from exportd.backfills order by position'))
        await advanceBackfill(journal, policies, id);
    },
    count: (choice: number, rows: number, ranges: number) =>
      withRun(choice, (id) => {
        const splitKeys = Array.from({ length: ranges }, (_, at) => key(`split key ${at}`));
        return recorder.recordCount(id, {
          records_total_count: rows,
          fingerprint: fingerprintOf(rows),
          settled: rows % 2 === 0,
          ...(rows % 2 === 1 && { barrier: { phase: 'prepared', blockers: ['1/test'] } as const }),
          split_keys: splitKeys,
        });
      }),
    start: (choice: number) =>
      withRun(choice, async (id, { ranges }) => {
        const range = choice % ranges.length;
        const run = await recorder.startExport(id, range);
        if (run.generation === 0) await recorder.reserveGeneration(id, attemptOf(run, range));
      }),
    upload: (choice: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const file = run.ranges[range]?.next_file ?? 0;
        const name = `${id}/${run.generation}/${range}/${file}`;
        await recorder.recordUpload(id, attemptOf(run, range), {
          file,
          key: name,
          upload_id: `upload of ${name}`,
          upload_token: `token of ${name}`,
          part_bytes: null,
          encoder: 'test/1',
        });
      }),
    wholeFile: (choice: number, rows: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const file = run.ranges[range]?.next_file ?? 0;
        const name = `${id}/${run.generation}/${range}/${file}`;
        const started = { file, key: name, upload_token: `token of ${name}`, encoder: 'test/1' };
        await recorder.planWholeFile(id, attemptOf(run, range), started, {
          part_number: 1,
          rows,
          fingerprint: fingerprintOf(rows),
          rejected: 0,
          bytes: rows * 30,
          crc32: '00000000',
          first: key('first'),
          last: key('last'),
          encoder_state: null,
          final: true,
        });
      }),
    takenKey: (choice: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const file = run.ranges[range]?.next_file ?? 0;
        const taken = { file, key: `${id}/${run.generation}/${range}/${file}` };
        await recorder.recordTakenKey(id, attemptOf(run, range), taken);
      }),
    part: (choice: number, rows: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const upload = uploadOf(run, range);
        if (!upload) return;
        await recorder.planPart(id, attemptOf(run, range), upload.key, {
          part_number: upload.highest_part_number + 1,
          rows,
          fingerprint: fingerprintOf(rows),
          rejected: 0,
          bytes: rows * 30,
          crc32: '00000000',
          first: key('first'),
          last: key(`row ${upload.highest_part_number}`),
          encoder_state: { length: rows },
        });
      }),
    resume: (choice: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const upload = uploadOf(run, range);
        if (!upload) return;
        const resumed = await recorder.startExport(id, range);
        const kept = upload.parts.map(({ part_number }) => part_number).slice(0, choice);
        await recorder.resumeUpload(id, attemptOf(resumed, range), upload.key, kept);
      }),
    file: (choice: number, rows: number) =>
      withRun(choice, async (id, run) => {
        const range = choice % run.ranges.length;
        const upload = uploadOf(run, range);
        if (upload) await recorder.recordFile(id, attemptOf(run, range), fileOf(upload.key, rows));
      }),
    rejected: (choice: number) =>
      withRun(choice, (id, { generation }) =>
        recorder.planRejectedFile(id, generation, fileOf(`${id}/${generation}/rejected`)),
      ),
    lateRows: (choice: number) =>
      withRun(choice, (id, { generation }) =>
        recorder.reserveForLateRows(id, generation, fingerprintOf(choice)),
      ),
    finish: (choice: number, rows: number) =>
      withRun(choice, async (id, run) => {
        if (run.generation === 0) await recorder.reserveGeneration(id);
        const { generation } = await recorder.readActive(id);
        await recorder.finishExport(id, generation, {
          source_rows: rows,
          fingerprint: fingerprintOf(rows),
          encoder: 'test/1',
        });
        await recordReplacement(recorder, id, choice % 3 === 0 ? 'not_comparable' : 'same_rows');
        const claimed = await recorder.startPublish(id, generation);
        if (rows % 3 === 1) await recorder.withdrawPublish(id, claimed);
        else if (choice % 4 > 0) await recorder.complete(id, generation, `${id}/${generation}/manifest`);
      }),
    unchanged: (choice: number) =>
      withRun(choice, async (id, run) => {
        const replaced = await recorder.findReplaced(run);
        // A run exports again what another has adopted.
        if (replaced?.adopted_by === null) await recorder.completeUnchanged(id, replaced);
      }),
    end: (choice: number, status: Parameters<typeof endRun>[3]['status']) =>
      withRun(choice, (id) => endRun(journal, policies, id, { status, latest_error: 'Test: a reason.' })),
    adopt: (choice: number, generation: number) =>
      withRun(choice, (id, run) =>
        recorder.adoptManifest(id, run.generation, unknownManifest(run, generation)),
      ),
    settle: async (outcome: SettlingDecision) => {
      const [blocked] = await readUnsettledRuns(pool, undefined);
      if (blocked) await recordBarrier(journal, blocked, { phase: 'open' });
      const [opened] = await readOpenedRuns(pool, batchExportId, 1);
      if (opened) await recordSettled(journal, opened, outcome);
    },
    continueAsNew: (choice: number) => withRun(choice, (id) => continueRun(journal, id)),
    cleanUp: async (deleted: boolean) => {
      const objects = await readObsoleteObjects(pool, policies.maintenance, batchExportId, 10);
      await recordDeletions(
        journal,
        objects.map((object) => ({ object, deleted, reason: deleted ? null : 'Test: a reason.' })),
      );
    },
    /** As if everything that has ended were old. */
    collapse: (newestRuns: number) =>
      collapseHistory(
        journal,
        { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns },
        storedRows,
        () => false,
      ),
    compare: async (rows: number) => {
      const { maintenance } = policies;
      const [group] = await readDueGroups(pool, maintenance, [], 1);
      const batch = group && (await readDueBatch(pool, maintenance, group));
      for (const interval of batch?.intervals.flat().slice(0, 2) ?? []) {
        const source = fingerprintOf(rows);
        const comparison = compareFingerprints(fingerprintOf(interval.bucket_rows), source);
        const done = { interval, comparison, source, at: batch?.at ?? '' };
        if (isChanged(done)) await recordComparison(journal, maintenance.comparisons, done);
        else await recordUnchanged(pool, maintenance.comparisons, [done]);
      }
    },
  };
}

/** An export with the actions of its life. */
export type Lifecycle = Awaited<ReturnType<typeof startLifecycle>>;

/** An action in the lifecycle of an export. */
interface LifecycleAction {
  readonly label: string;
  readonly run: (lifecycle: Lifecycle) => Promise<void>;
}

/** Few runs at a time, so that some make progress. */
const choice = fc.nat({ max: 3 });
const rows = fc.nat({ max: 5 });

const labelled = <Value>(
  name: string,
  values: fc.Arbitrary<Value>,
  run: (lifecycle: Lifecycle, value: Value) => Promise<void>,
): fc.Arbitrary<LifecycleAction> =>
  values.map((value) => {
    const label = `${name} ${JSON.stringify(value)}`;
    return { label, run: (lifecycle) => run(lifecycle, value), [fc.toStringMethod]: () => label };
  });

const changes = fc.record(
  {
    name: fc.constantFrom('Renamed', 'Behind'),
    interval: fc.constantFrom('every 1 minutes', 'every 2 minutes', 'hour', 'day'),
    model: fc.constantFrom('events', 'persons'),
    // The schedule lags by minutes, so that it skips the intervals that other bounds have excluded.
    start_at: fc.constantFrom(null, '2026-11-01T00:00:00.000Z', minutesAgo(3)),
    end_at: fc.constantFrom(null, '2099-01-01T00:00:00.000Z', minutesAgo(2)),
  },
  { requiredKeys: [] },
);

const command = fc.oneof(
  labelled('pause', fc.constant({}), (lifecycle, body) => lifecycle.command('pause', body)),
  labelled('unpause', fc.record({ backfill: fc.boolean() }), (lifecycle, body) =>
    lifecycle.command('unpause', body),
  ),
  labelled(
    'update',
    fc.record({ changes, paused: fc.boolean() }, { requiredKeys: ['changes'] }),
    (lifecycle, body) => lifecycle.command('update', body),
  ),
  labelled(
    'backfill',
    fc.tuple(
      fc.integer({ min: 2, max: 9 }),
      fc.integer({ min: 0, max: 4 }),
      fc.record(
        { allow_shrink: fc.boolean(), rewrite: fc.boolean(), only: fc.constant('missing') },
        { requiredKeys: [] },
      ),
    ),
    (lifecycle, [from, to, scope]) =>
      lifecycle.command('backfill', {
        start_at: minutesAgo(from + to),
        end_at: minutesAgo(to),
        ...scope,
      }),
  ),
  labelled(
    'command on a run',
    fc.tuple(fc.constantFrom('cancelRun', 'retry'), choice),
    (lifecycle, [name, value]) => lifecycle.onRun(name, value),
  ),
  labelled(
    'command on a backfill',
    fc.tuple(fc.constantFrom('cancelBackfill', 'pauseBackfill', 'unpauseBackfill'), choice),
    (lifecycle, [name, value]) => lifecycle.onBackfill(name, value),
  ),
  labelled('retry of failed runs', fc.constant(null), (lifecycle) => lifecycle.command('retryFailed')),
  labelled('schedule', fc.constant(null), (lifecycle) => lifecycle.schedule()),
  labelled('step backfills', fc.constant(null), (lifecycle) => lifecycle.stepBackfills()),
);

const runStep = fc.oneof(
  labelled('count', fc.tuple(choice, rows, fc.nat({ max: 2 })), (lifecycle, value) =>
    lifecycle.count(...value),
  ),
  labelled('start', choice, (lifecycle, value) => lifecycle.start(value)),
  labelled('upload', choice, (lifecycle, value) => lifecycle.upload(value)),
  labelled('whole file', fc.tuple(choice, fc.nat(1_000)), (lifecycle, [value, rows]) =>
    lifecycle.wholeFile(value, rows),
  ),
  labelled('taken key', choice, (lifecycle, value) => lifecycle.takenKey(value)),
  labelled('part', fc.tuple(choice, rows), (lifecycle, value) => lifecycle.part(...value)),
  labelled('resume', choice, (lifecycle, value) => lifecycle.resume(value)),
  labelled('file', fc.tuple(choice, rows), (lifecycle, value) => lifecycle.file(...value)),
  labelled('rejected rows', choice, (lifecycle, value) => lifecycle.rejected(value)),
  labelled('late rows', choice, (lifecycle, value) => lifecycle.lateRows(value)),
  labelled('finish', fc.tuple(choice, rows), (lifecycle, value) => lifecycle.finish(...value)),
  labelled(
    'end',
    fc.tuple(choice, fc.constantFrom('Failed', 'FailedRetryable', 'TimedOut', 'Terminated', 'Cancelled')),
    (lifecycle, value) => lifecycle.end(...value),
  ),
  labelled('unchanged', choice, (lifecycle, value) => lifecycle.unchanged(value)),
  labelled('adopt', fc.tuple(choice, fc.integer({ min: 1, max: 4 })), (lifecycle, value) =>
    lifecycle.adopt(...value),
  ),
  labelled('continue as new', choice, (lifecycle, value) => lifecycle.continueAsNew(value)),
  labelled('clean up', fc.boolean(), (lifecycle, deleted) => lifecycle.cleanUp(deleted)),
  labelled('compare', rows, (lifecycle, value) => lifecycle.compare(value)),
  labelled('collapse', fc.nat({ max: 1 }), async (lifecycle, value) => {
    await lifecycle.collapse(value);
  }),
  labelled('settle', fc.constantFrom('exported_again' as const, 'same_rows' as const), (lifecycle, outcome) =>
    lifecycle.settle({ outcome, requests_retry: outcome === 'exported_again' }),
  ),
);

const action = fc.oneof(
  { weight: 20, arbitrary: command },
  { weight: 40, arbitrary: runStep },
  {
    weight: 1,
    arbitrary: labelled('delete', fc.constant({}), (lifecycle, body) => lifecycle.command('delete', body)),
  },
);

/** A random lifecycle: a sequence of actions. */
export const anyLifecycle = fc.array(action, { minLength: 40, maxLength: 60 });
