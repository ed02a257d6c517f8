import { areInSameBucket } from '../destination/config_versions.ts';
import type { Manifest } from '../destination/manifest.ts';
import { backfillDecider, rangeOfPlan } from '../domain/backfill.ts';
import { nothingEarlier } from '../domain/earlier_generations.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import {
  decideFinish,
  decidePublish,
  decideWithdrawal,
  rangeOf,
  requireActive,
  requireAttempt,
  requireGeneration,
  runDecider,
  RunEnded,
  withBase,
} from '../domain/run.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  filesOf,
  isActiveStatus,
  isFailureDue,
  type RangeAttempt,
} from '../domain/run_state.ts';
import {
  type Journal,
  type JournalTransaction,
  logLineWrite,
  type LogLevel,
  readState,
  writeLogLine,
} from '../journal/journal.ts';
import { comparisonsWrite } from './comparisons.ts';
import {
  countOfNone,
  countStep,
  type DeferredStep,
  DeferredSteps,
  type EmptyInterval,
  emptyStep,
  isUntouched,
  type PreparedRun,
} from './deferred_steps.ts';
import { foreignManifestBecause, readAdoptedManifest } from './adopted_manifests.ts';
import { readDecision } from './interval_decisions.ts';
import {
  type RangeFile,
  readFiles,
  readLateKeys,
  readPublishedFiles,
  readReplacedFiles,
} from './read_files.ts';
import { createFileRecorder } from './record_files.ts';
import {
  findReplacedRun,
  hasPublished,
  isCollapsedRun,
  isKnownToDiffer,
  mayHavePublished,
  type OtherRuns,
  readEarlierGenerations,
  readRunAmongOthers,
} from './replaced_runs.ts';
import {
  createRunSteps,
  logIdsOf,
  nextGeneration,
  reserveNextGeneration,
  type RunSteps,
  type RunStream,
  type StepOptions,
} from './run_steps.ts';
import type { RunEventData } from '../domain/run_events.ts';

/** Records how a run publishes its manifest, and what becomes of those before. */
const createPublishRecorder = (journal: Journal, { step }: RunSteps) => ({
  /**
   * Claims publishing and decides what stays of the generations before. From here on a cancellation asks the bucket first.
   * Each attempt claims once; `publish_claims` is the number of its claim.
   * @param found the run whose manifest it replaces, if the attempt has read it
   * @param before steps of the attempt that are recorded with it
   * @throws ConfigVersionNotFound
   */
  startPublish: async (
    runId: string,
    generation: number,
    found?: ReplacedRun | null,
    before: readonly DeferredStep[] = [],
  ): Promise<ExistingRun> => {
    const findReplaced = async () =>
      findReplacedRun(journal, requireActive(await readState(journal, runDecider, runId)).spec);
    const replaced = found === undefined ? await findReplaced() : found;
    const claim = async (stream: RunStream, { connection }: JournalTransaction): Promise<void> => {
      const run = requireGeneration(stream.state(), generation);
      const earlier = replaced
        ? await readEarlierGenerations(connection, runId, run, replaced)
        : nothingEarlier;
      await stream.append(`generation:${generation}/publish/${run.publish_claims + 1}`, [
        decidePublish(run, generation, earlier),
      ]);
    };
    return step(runId, claim, before);
  },
  /**
   * Withdraws a claim whose attempt sent no manifest, so that the run can be cancelled again. A claim that other attempts
   * continued stays.
   */
  withdrawPublish: (
    runId: string,
    { generation, publish_claims }: Pick<ExistingRun, 'generation' | 'publish_claims'>,
  ) =>
    step(runId, async (stream) => {
      await stream.append(
        `generation:${generation}/withdrawn/${publish_claims}`,
        decideWithdrawal(stream.state(), generation, publish_claims),
      );
    }),
  /**
   * Cancels a run as requested: its bucket has no manifest of it. Does nothing if another attempt has continued under the
   * claim meanwhile.
   */
  cancelAsRequested: (runId: string, { publish_claims }: Pick<ExistingRun, 'publish_claims'>) =>
    step(runId, async (stream, { later }) => {
      const run = requireActive(stream.state());
      if (run.cancel_requested === null || run.publish_claims !== publish_claims) return;
      await stream.append('ended', [{ type: 'RunCancelled', data: { reason: run.cancel_requested } }]);
      const { data_interval_start: start, data_interval_end: end } = run.spec;
      const message = `Run of ${start} to ${end} ended Cancelled, because its bucket has no manifest of it: ${run.cancel_requested}`;
      later(logLineWrite({ ...logIdsOf(run, runId), level: 'WARNING', message }));
    }),
  /** Whether a run of the interval published with this id, so that the journal knows its manifest. */
  hasPublished: (run: ExistingRun, otherRunId: string) => hasPublished(journal.pool, run.spec, otherRunId),
  /** Whether a run that wrote a manifest of the interval was collapsed. */
  isCollapsedRun: (run: ExistingRun, otherRunId: string) =>
    isCollapsedRun(journal.pool, run.spec, otherRunId),
  /** Whether another run of the interval has claimed publishing, so that its manifest may be stored. */
  mayHavePublished: (run: ExistingRun, runId: string) => mayHavePublished(journal.pool, run.spec, runId),
  /** Why exportd cannot have written a manifest of the run's interval, as a sentence; null if it may have. */
  foreignManifestBecause: ({ spec }: ExistingRun, manifest: Manifest) =>
    foreignManifestBecause(journal.pool, spec, manifest),
  /**
   * Records that another manifest than the journal knows is the current one. The run keeps its files, continues with a
   * generation above the manifest's and can be cancelled again.
   */
  adoptManifest: async (runId: string, generation: number, manifest: Manifest): Promise<ExistingRun> => {
    const { spec } = requireActive(await readState(journal, runDecider, runId));
    const found = await readAdoptedManifest(journal.pool, spec, manifest);
    return step(runId, async (stream, transaction) => {
      const run = requireGeneration(stream.state(), generation);
      const raised_to = Math.max(await nextGeneration(transaction, run), found.generation + 1);
      await stream.append(`adopt:${found.run_id}/${found.generation}`, [
        { type: 'RunManifestAdopted', data: { ...found, raised_to } },
      ]);
    });
  },
  /** `expiresAt`: when a lifecycle rule of the bucket deletes the manifest; null without a rule. */
  complete: async (
    runId: string,
    generation: number,
    manifestKey: string,
    expiresAt: string | null = null,
  ): Promise<void> => {
    await step(runId, async (stream, { later }) => {
      const state = stream.state();
      if (state.status === 'Completed') return;
      const run = requireGeneration(state, generation);
      await stream.append('ended', [
        {
          type: 'RunCompleted',
          data: {
            manifest_key: manifestKey,
            expires_at: expiresAt,
            covers: earlierGenerationsOf(run).covers,
          },
        },
      ]);
      const completed = withBase(run);
      const { rows } = filesOf(completed);
      later(comparisonsWrite(runId, completed, rows + (completed.rejected_file?.rows ?? 0)));
      const { data_interval_start: start, data_interval_end: end } = run.spec;
      const message = `Exported ${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'} of ${start} to ${end}. Manifest: ${manifestKey}.`;
      later(logLineWrite({ ...logIdsOf(run, runId), level: 'INFO', message }));
      const removed = describeRemovedRows(run, rows);
      if (removed !== null)
        later(logLineWrite({ ...logIdsOf(run, runId), level: 'WARNING', message: removed }));
    });
  },
});

/** Records that a run leaves its interval as it is. */
const createUnchangedRecorder = (journal: Journal, { step }: RunSteps) => ({
  /** Whether the files of the manifest are known to differ from the source, whatever their rows are now. */
  isKnownToDiffer: ({ spec }: ExistingRun, { run_id }: ReplacedRun) =>
    isKnownToDiffer(journal.pool, spec, run_id),
  /** Completes a run that publishes nothing: bucket and source have the rows of the current manifest. */
  completeUnchanged: (runId: string, replaced: ReplacedRun) =>
    step(runId, async (stream, { later }) => {
      const run = requireActive(stream.state());
      const { generation } = replaced.run;
      await stream.append('ended', [
        { type: 'RunUnchanged', data: { manifest_run_id: replaced.run_id, generation } },
      ]);
      const { data_interval_start: start, data_interval_end: end } = run.spec;
      const message =
        run.replacement?.outcome === 'rows_kept'
          ? `Nothing was published of ${start} to ${end}: the source lacks ${run.replacement.missing_rows} rows of generation ${generation}, which are kept as was decided.`
          : `Nothing was published of ${start} to ${end}: the source has the same ${run.records_total_count ?? 0} rows as generation ${generation}, whose files are in the bucket.`;
      later(logLineWrite({ ...logIdsOf(run, runId), level: 'INFO', message }));
    }),
});

/** What a run that was allowed to shrink its interval removes; null if it has as many rows as the former generation. */
function describeRemovedRows({ replacement, rejected_file }: ExistingRun, rows: number): string | null {
  if (replacement?.outcome !== 'shrink_allowed' && replacement?.outcome !== 'removal_decided') return null;
  const removed = replacement.bucket_rows - rows - (rejected_file?.rows ?? 0);
  if (removed <= 0) return null;
  return `The run was allowed to remove rows: generation ${replacement.replaced.generation} had ${removed} more. Its files will be deleted.`;
}

/** A step of a run that failed again, and is retried. */
interface FailedAttempt {
  /** The type of the error and a message for users, as `classifyError` returns them. */
  readonly type: string;
  readonly message: string;
  /** What is retried, for example "the export". */
  readonly step: string;
  /** When the retries end; null if never. */
  readonly retriedUntil: Date | null;
}

/**
 * Records a failure that the run is retried after, in its `latest_error` and in the log of the export. Repetitions are
 * recorded every few minutes, and when the run has made progress since. Does nothing once the run has ended.
 */
async function recordFailedAttempt(
  journal: Journal,
  runId: string,
  { type, message, step, retriedUntil }: FailedAttempt,
): Promise<void> {
  await journal.transaction(async (transaction) => {
    const { connection, now } = transaction;
    const stream = await transaction.lock(runDecider, runId);
    const run = stream.state();
    if (run.status === 'Absent' || !isActiveStatus(run.status)) return;
    const { rows } = await connection.query<{ isShown: boolean }>(
      'select latest_error is not null as "isShown" from exportd.batch_export_runs where id = $1',
      [runId],
    );
    const isShown = rows[0]?.isShown ?? false;
    if (!isFailureDue(run.failed_attempts, type, { isShown, now })) return;
    const retried_until = retriedUntil?.toISOString() ?? null;
    const until = retried_until === null ? '' : ` until ${retried_until}`;
    const latest_error = `${type}: ${message} Retrying ${step}${until}.`;
    const recorded = run.failed_attempts[type]?.recorded ?? 0;
    await stream.append(`failed:${type}/${recorded + 1}`, [
      { type: 'RunAttemptFailed', data: { error_type: type, latest_error, retried_until } },
    ]);
    const { data_interval_start: start, data_interval_end: end } = run.spec;
    await writeLogLine(connection, {
      ...logIdsOf(run, runId),
      level: 'WARNING',
      message: `Run of ${start} to ${end} is delayed: ${latest_error}`,
    });
  });
}

/**
 * Records the steps of a run's activities. Every step throws RunEnded once the run has ended, and GenerationSuperseded
 * once a newer attempt has started or reserved a generation, so that a zombie can change nothing.
 */
export type RunRecorder = ReturnType<typeof createRunRecorder>;

export function createRunRecorder(journal: Journal) {
  const steps = createRunSteps(journal);
  const { step, generationStep } = steps;
  return {
    ...createFileRecorder(steps),
    ...createPublishRecorder(journal, steps),
    ...createUnchangedRecorder(journal, steps),
    /** Reads the run, whatever its status. */
    read: async (runId: string): Promise<ExistingRun> => {
      const state = await readState(journal, runDecider, runId);
      if (state.status === 'Absent') throw new RunEnded('Absent');
      return state;
    },
    /** Reads the run if it is active. */
    readActive: async (runId: string) => requireActive(await readState(journal, runDecider, runId)),
    /** The same with what it finds of others. */
    readActiveAmongOthers: async (runId: string): Promise<PreparedRun> => {
      const found = await readRunAmongOthers(journal, runId);
      requireActive(found.run);
      return { ...found, deferred: new DeferredSteps() };
    },
    /** Reads the run, whatever its status, and what it finds of others. */
    readAmongOthers: async (runId: string): Promise<PreparedRun> => ({
      ...(await readRunAmongOthers(journal, runId)),
      deferred: new DeferredSteps(),
    }),
    /** The time that all intervals of a backfill are in; null for a repair, which grows. */
    readBackfillRange: async (backfillId: string): Promise<DataInterval | null> => {
      const backfill = await readState(journal, backfillDecider, backfillId);
      return backfill.status === 'Absent' ? null : rangeOfPlan(backfill.spec.plan);
    },
    /** Records the row count below the cutoff, whether the barrier settled, and the keys that split the interval. */
    recordCount: (runId: string, facts: RunEventData<'RunCounted'>) => step(runId, countStep(facts)),
    /** Records an interval without rows and finishes its export with a generation that has no files. `others`: as they were read. */
    recordEmpty: (runId: string, empty: EmptyInterval, others?: OtherRuns) =>
      step(runId, async (stream, transaction) => {
        const run = requireActive(stream.state());
        // Of nearly every run that is all, which one statement stores.
        if (run.records_total_count === null && others && isUntouched(run)) {
          await emptyStep(empty, others)(stream, transaction);
          return;
        }
        await countStep(countOfNone(empty))(stream, transaction);
        if (run.phase.name !== 'exporting') return;
        // Inherited files and uploads are obsolete if the interval has no rows.
        const hasInheritedObjects = run.ranges.some(
          ({ upload, files }) => upload !== null || files.count > 0,
        );
        if (run.generation === 0 || hasInheritedObjects)
          await reserveNextGeneration(stream, transaction, run, {}, others);
        const reserved = requireActive(stream.state());
        const { fingerprint, encoder } = empty;
        const finished = decideFinish(reserved, { source_rows: 0, fingerprint, encoder });
        await stream.append(`generation:${reserved.generation}/finished`, finished);
      }),
    /** Finds the run whose manifest the run would replace; null if there is none. */
    findReplaced: ({ spec }: ExistingRun) => findReplacedRun(journal, spec),
    /** Reads what was decided about the files of the run's interval. */
    readDecision: ({ spec }: ExistingRun) =>
      readDecision(journal.pool, {
        batch_export_id: spec.batch_export_id,
        start: spec.data_interval_start,
        end: spec.data_interval_end,
      }),
    /** Reads the completed files of the run's generation, in key order. */
    readFiles: (runId: string, run: ExistingRun): Promise<readonly RangeFile[]> =>
      readFiles(journal.pool, runId, run),
    /** Reads the files of the manifest that the run publishes, in key order. */
    readPublishedFiles: (runId: string, run: ExistingRun) => readPublishedFiles(journal.pool, runId, run),
    /** Reads the keys of the rows that the run exports; undefined if it exports all. */
    readLateKeys: (run: ExistingRun) => readLateKeys(journal.pool, run),
    /** Whether the run writes to the bucket of the manifest that it replaces. */
    areInSameBucket: ({ spec }: ExistingRun, { run }: ReplacedRun) =>
      areInSameBucket(journal.pool, spec, run.spec),
    /** Reads the files of the manifest that a run replaces, in key order. */
    readReplacedFiles: (replaced: ReplacedRun) => readReplacedFiles(journal.pool, replaced),
    /** Records how the source compares with the manifest that the run replaces; once before the export and per generation. */
    recordReplacement: (runId: string, check: RunEventData<'RunReplacementChecked'>) =>
      step(runId, async (stream) => {
        const run = requireActive(stream.state());
        const { replaced, generation } = check;
        const moment = generation === null ? 'before export' : 'after export';
        await stream.append(`replacement:${replaced.run_id}/${run.generation}/${moment}`, [
          { type: 'RunReplacementChecked', data: check },
        ]);
      }),
    /**
     * Starts an attempt at a range: the run is Running, and steps of earlier attempts are rejected. `reserves`: a run that has no
     * generation gets one in the same transaction, since nothing happens in between. `others`: as they were read.
     */
    startExport: (
      runId: string,
      range: number,
      { reserves = false, others }: { reserves?: boolean; others?: OtherRuns } = {},
    ) =>
      step(runId, async (stream, transaction) => {
        const run = requireActive(stream.state());
        const { attempt } = rangeOf(run, range);
        const reservesFirst = reserves && run.generation === 0;
        if (run.status === 'Starting') {
          const reserved = reservesFirst && { generation: await nextGeneration(transaction, run, others) };
          await stream.append('export', [{ type: 'RunExportStarted', data: { range, ...reserved } }]);
          return;
        }
        await stream.append(`attempt:${range}/${attempt + 1}`, [
          { type: 'RunAttemptStarted', data: { range } },
        ]);
        if (reservesFirst)
          await reserveNextGeneration(stream, transaction, requireActive(stream.state()), {}, others);
      }),
    /** Reserves the interval's next generation; with `attempt`, only if that is the latest. */
    reserveGeneration: (runId: string, attempt?: RangeAttempt) =>
      step(runId, async (stream, transaction) => {
        const run = attempt ? requireAttempt(stream.state(), attempt).run : requireActive(stream.state());
        await reserveNextGeneration(stream, transaction, run);
      }),
    /** Reserves the next generation: late rows arrived after `generation` was finished, and the source is `fingerprint` now. */
    reserveForLateRows: (runId: string, generation: number, fingerprint: Fingerprint) =>
      step(runId, async (stream, transaction) => {
        const run = requireGeneration(stream.state(), generation);
        await reserveNextGeneration(stream, transaction, run, { late_rows: true, fingerprint });
      }),
    /** Records that the files contain every row of the interval. */
    finishExport: (
      runId: string,
      generation: number,
      facts: Parameters<typeof decideFinish>[1],
      options: StepOptions = {},
    ) => generationStep(runId, generation, 'finished', (run) => decideFinish(run, facts), options),
    /** Records steps that were deferred, without another one. */
    recordDeferred: (runId: string, steps: readonly DeferredStep[]) =>
      step(runId, () => Promise.resolve(), steps),
    recordFailedAttempt: (runId: string, failure: FailedAttempt) =>
      recordFailedAttempt(journal, runId, failure),
    /** Writes a line to the export's log. */
    log: (run: ExistingRun, runId: string, level: LogLevel, message: string) =>
      writeLogLine(journal.pool, { ...logIdsOf(run, runId), level, message }),
  };
}
