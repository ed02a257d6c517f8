import { Context } from '@temporalio/activity';
import type { ExportActivities } from '../../activities/run.ts';
import type { MaintenanceActivities } from '../../activities/maintenance.ts';
import { type StepAttempt, wrapActivities } from '../../activities/run_step.ts';
import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import { recordSameRows } from '../decisions/replacements.ts';
import { emptyFingerprint, encodeBuckets } from '../../src/domain/fingerprint.ts';
import { attemptOf } from '../../src/domain/run.ts';
import type { SortKey } from '../../src/domain/sort_key.ts';
import type { CompleteSmallRun } from '../../src/export/complete_small_run.ts';
import { createRunTurns, type RunTurns } from '../../src/export/run_turns.ts';
import type { YieldableSlots } from '../../src/export/yieldable_slots.ts';
import { openBarrier } from '../../src/source/barrier.ts';
import type { RowFinder, Source } from '../../src/source/source.ts';
import type { UnsettledBarrier } from '../../src/domain/barrier.ts';
import type { Logger } from '../../src/telemetry/logger.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

/** What the fakes of source and destination do. A test overrides what it is about. */
export interface Behaviour {
  /** How many rows the interval has; `signal` is that of the activity. */
  countRows: (signal?: AbortSignal) => Promise<number>;
  checkBarrier: Source['checkBarrier'];
  checkBarriers: Source['checkBarriers'];
  /** Called inside the export activity, between its first step and its last. */
  duringExport: (runId: string, range: number, progress: StepAttempt['progress']) => Promise<void>;
  /** The clean-up of an export's bucket; returns whether it has more to do. */
  cleanUp: (batchExportId: string) => Promise<boolean>;
  /** Completes a small run in the control worker; false leaves that to the export worker. */
  completeSmallRun: CompleteSmallRun;
  /** The turns of runs in the worker. */
  turns: RunTurns;
  /** Called by `publishManifest` before it claims publishing, and after that. */
  beforeClaim: () => Promise<void>;
  afterClaim: () => Promise<void>;
  /** Called by `exportInterval`: whether it is the last execution of the run, or rows are left. */
  isLastExecution: () => boolean;
  /** Called by `checkReplacement`; it may reject to hold the run. */
  checkReplacement: (runId: string) => Promise<void>;
  /** Keys that split an interval of more rows than EXPORTD_RANGE_ROWS. */
  splitKeys: () => Promise<readonly SortKey[]>;
}

const turns = createRunTurns();

/** The default behaviour: 7 rows, no errors. */
export const createBehaviour = (): Behaviour => ({
  countRows: () => Promise.resolve(7),
  completeSmallRun: () => Promise.resolve(false),
  turns,
  beforeClaim: () => Promise.resolve(),
  afterClaim: () => Promise.resolve(),
  isLastExecution: () => true,
  checkReplacement: () => Promise.resolve(),
  splitKeys: () => Promise.resolve([]),
  checkBarrier: () => Promise.resolve(openBarrier),
  checkBarriers: (states) => Promise.resolve(states.map(() => openBarrier)),
  duringExport: () => Promise.resolve(),
  cleanUp: () => Promise.resolve(false),
});

/** A barrier that a transaction blocks, of which nothing else is known. */
export const blockedBarrier: UnsettledBarrier = {
  phase: 'transactions',
  server_start: '2026-01-01T00:00:00.000000Z',
  blockers: [{ virtual_transaction: '3/4', pid: 4, backend_start: null }],
};

/** A source that responds to no local activity. */
export const checkBarrierSlowly: Source['checkBarrier'] = (_, _state, signal) =>
  Context.current().info.isLocal
    ? new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
      })
    : Promise.resolve(openBarrier);

export const fakeSource = (behaviour: Behaviour): Source & RowFinder => ({
  columns: () => [],
  strayRows: () => Promise.resolve([]),
  checkBarrier: (...check) => behaviour.checkBarrier(...check),
  checkBarriers: (states) => behaviour.checkBarriers(states),
  countRows: () => behaviour.countRows(),
  fingerprint: async ({ interval }, signal) => {
    const rows = await behaviour.countRows(signal);
    const fingerprint = emptyFingerprint(interval, 'uuid_hash_extended/0');
    return { ...fingerprint, encoded_buckets: encodeBuckets([{ index: 0, rows, sum: '1' }]) };
  },
  fingerprints: () => {
    throw new Error('The fake source compares no intervals.');
  },
  splitKeys: () => behaviour.splitKeys(),
  keys: () => {
    throw new Error('The fake source has no keys.');
  },
  blocks: () => {
    throw new Error('The fake source has no rows.');
  },
  heldBlocks: () => {
    throw new Error('The fake source has no rows.');
  },
  sample: () => {
    throw new Error('The fake source has no rows.');
  },
  check: () => {
    throw new Error('The fake source has no relations.');
  },
  map: () => {
    throw new Error('The fake source has no relations.');
  },
  findEventKey: () => Promise.resolve(null),
  close: () => Promise.resolve(),
});

export const fakeMaintenanceActivities = (behaviour: Behaviour, logger: Logger): MaintenanceActivities =>
  wrapActivities(
    { logger },
    {
      cleanUpExport: async (_, { batch_export_id }: { batch_export_id: string }) => ({
        deleted: 1,
        kept: 0,
        has_more: await behaviour.cleanUp(batch_export_id),
      }),
      compareIntervals: () => Promise.resolve({ compared: 1, differing: 0, has_more: false }),
      checkBarriers: () => Promise.resolve({ checked: 0, opened: 0, has_more: false as const }),
      settleRuns: () => Promise.resolve({ settled: 0, has_more: false }),
    },
  );

const finished = { source_rows: 7, fingerprint: fingerprintOf(7), encoder: 'fake' };

/** Completes small runs in the control worker, as `createSmallRunCompleter` does. */
export const completingSmallRuns =
  (recorder: RunRecorder): Behaviour['completeSmallRun'] =>
  async (run_id, _, small) => {
    if (small) await recorder.recordDeferred(run_id, small.deferred.take());
    const { status, phase } = await recorder.read(run_id);
    // An attempt that is repeated.
    if (status === 'Completed') return true;
    if (phase.name === 'exporting') {
      await recorder.startExport(run_id, 0);
      const { generation } = await recorder.reserveGeneration(run_id);
      await recorder.finishExport(run_id, generation, finished);
    }
    const { generation } = await recorder.readActive(run_id);
    await recorder.startPublish(run_id, generation);
    await recorder.complete(run_id, generation, 'manifest.json');
    return true;
  };

export function fakeExportActivities(
  recorder: RunRecorder,
  behaviour: Behaviour,
  logger: Logger,
  slots: YieldableSlots,
): ExportActivities {
  const publish = async (run_id: string) => {
    const { generation } = await recorder.readActive(run_id);
    await recordSameRows(recorder, run_id);
    await behaviour.beforeClaim();
    await recorder.startPublish(run_id, generation);
    await behaviour.afterClaim();
    await recorder.complete(run_id, generation, 'manifest.json');
    return { generation, rows: 7, manifest_key: 'manifest.json' };
  };
  return wrapActivities(
    { logger, slots },
    {
      checkReplacement: async (_, { run_id }: { run_id: string }) => {
        await behaviour.checkReplacement(run_id);
        const replaced = await recorder.findReplaced(await recorder.readActive(run_id));
        if (!replaced) return null;
        await recorder.recordReplacement(run_id, {
          replaced: {
            run_id: replaced.run_id,
            generation: replaced.run.generation,
          },
          outcome: 'every_row_present',
          missing_rows: 0,
          bucket_rows: 7,
          source_rows: 7,
          source: fingerprintOf(7),
          generation: null,
        });
        return 'every_row_present';
      },
      exportInterval: async (
        { progress },
        { run_id, publishes }: { run_id: string; publishes?: boolean },
      ) => {
        await recorder.startExport(run_id, 0);
        const { generation } = await recorder.reserveGeneration(run_id);
        await behaviour.duringExport(run_id, 0, progress);
        const isLast = behaviour.isLastExecution();
        if (isLast) await recorder.finishExport(run_id, generation, finished);
        const outcome = { finished: isLast, generation, rows: 7, bytes: 7, source_rows: 7 };
        if (!isLast || publishes !== true) return outcome;
        await publish(run_id);
        return { ...outcome, published: true as const };
      },
      exportRange: async ({ progress }, { run_id, range }: { run_id: string; range: number }) => {
        const attempt = attemptOf(await recorder.startExport(run_id, range), range);
        await behaviour.duringExport(run_id, range, progress);
        const { generation } = await recorder.finishRange(run_id, attempt);
        return {
          finished: true,
          generation,
          rows: 1,
          bytes: 1,
          source_rows: 0,
        };
      },
      finishExport: async (_, { run_id }: { run_id: string }) => {
        const { generation } = await recorder.readActive(run_id);
        await recorder.finishExport(run_id, generation, finished);
        return {
          finished: true,
          generation,
          rows: 7,
          bytes: 7,
          source_rows: 7,
        };
      },
      publishManifest: (_, { run_id }: { run_id: string }) => publish(run_id),
    },
  );
}
