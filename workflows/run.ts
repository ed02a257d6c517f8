import {
  ActivityFailure,
  type ActivityInterfaceFor,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  isCancellation,
  makeContinueAsNewFunc,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  sleep,
  TemporalFailure,
  TimeoutFailure,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { createExportActivities, RunActivities } from '../activities/run.ts';
import { isRunInput, type RunInput } from '../src/contract/workflow_inputs.ts';
import { isBudgetExceeded, isOperatorFault, isTooSlow } from '../src/contract/failure_details.ts';
import type { FailedOutcome } from '../src/decisions/run_outcomes.ts';
import type { CountedRows, CountInput } from '../src/export/count.ts';
import {
  barrierPollMs,
  exportOptions,
  journalOptions,
  remoteSourceOptions,
  searchAttributes,
  sourceOptions,
} from './activity_options.ts';
import { rowsText, truncate, until, withDetails } from './summaries.ts';

type ExportActivities = ReturnType<typeof createExportActivities>;

/**
 * Exports the ranges of an interval concurrently, on any free workers, until a new count matches the exported rows.
 * The first failure cancels the other ranges and is thrown once all of them have stopped.
 * @param atOnce how many of them at the same time: enough for several workers, and no queue ahead of other runs
 * @returns false when a range has sent this execution's share of parts and has rows left
 */
async function exportRanges(
  data: ActivityInterfaceFor<Pick<ExportActivities, 'exportRange' | 'finishExport'>>,
  run_id: string,
  ranges: number,
  atOnce: number,
): Promise<boolean> {
  for (;;) {
    if (!(await exportEach(data, run_id, ranges, atOnce))) return false;
    const { finished } = await data.finishExport({ run_id });
    if (finished) return true;
  }
}

async function exportEach(
  data: ActivityInterfaceFor<Pick<ExportActivities, 'exportRange'>>,
  run_id: string,
  ranges: number,
  atOnce: number,
): Promise<boolean> {
  const waiting = Array.from({ length: ranges }, (_, range) => range);
  const unfinished: number[] = [];
  const failures: unknown[] = [];
  const scope = new CancellationScope();
  /** Exports one range after another. Starts none after a range failed or was left unfinished. */
  const exportNextRanges = async (): Promise<void> => {
    while (unfinished.length === 0 && failures.length === 0) {
      const range = waiting.shift();
      if (range === undefined) return;
      const summary = `range ${range + 1} of ${ranges}`;
      const { finished } = await data.exportRange.executeWithOptions({ summary }, [{ run_id, range }]);
      if (!finished) unfinished.push(range);
    }
  };
  await scope.run(() =>
    Promise.all(
      Array.from({ length: Math.min(atOnce, ranges) }, () =>
        exportNextRanges().catch((error: unknown) => {
          failures.push(error);
          scope.cancel();
        }),
      ),
    ),
  );
  if (failures.length > 0) throw failures[0];
  return unfinished.length === 0;
}

/** The type of the failure of a run that waited for its source for too long. */
const runTimedOut = 'TimedOut';

/** The error of a run whose execution was cancelled, and not its run. */
const cancelledInTemporal = 'Cancelled in Temporal.';

/**
 * Maps the error of a failed step to the outcome of the run. Returns `already_ended` when the run already has a terminal
 * status, and undefined for an error that no step throws: a bug in workflow code, which Temporal retries until it is
 * fixed.
 */
function outcomeOf(error: unknown): FailedOutcome | 'already_ended' | undefined {
  if (isCancellation(error)) return { status: 'Cancelled', latest_error: cancelledInTemporal };
  // The SDK wraps failures of remote activities in an ActivityFailure, but not those of local activities.
  if (!(error instanceof TemporalFailure)) return undefined;
  const { cause = error } = error;
  if (cause instanceof ApplicationFailure) {
    if (cause.type === 'RunEnded') return 'already_ended';
    if (cause.type === runTimedOut) return { status: 'TimedOut', latest_error: cause.message };
    const isRetried = isOperatorFault(cause.details) || isBudgetExceeded(cause.details);
    return {
      // A local activity cannot wait for the operator, so its failure is not retried. Never a reason to fail the run.
      status: cause.nonRetryable === true && !isRetried ? 'Failed' : 'FailedRetryable',
      latest_error: `${cause.type ?? 'Error'}: ${cause.message}`,
    };
  }
  return { status: 'FailedRetryable', latest_error: lastErrorBefore(cause) ?? explain(error, cause) };
}

/** The error of the last attempt before a timeout. The SDK omits it from the error but keeps the server's failure. */
function lastErrorBefore(timeout: Error): string | undefined {
  const last = timeout instanceof TimeoutFailure ? timeout.failure?.cause : undefined;
  const type = last?.applicationFailureInfo?.type;
  return type && last.message ? `${type}: ${last.message}` : undefined;
}

function explain(error: TemporalFailure, cause: Error): string {
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'HEARTBEAT')
    return 'WorkerLost: The worker that exported this interval stopped sending heartbeats.';
  const step = error instanceof ActivityFailure ? `Activity ${error.activityType}` : 'Querying the source';
  return `BudgetExceeded: ${step} did not finish within its retry budget.`;
}

/**
 * Calls a local activity, and where that one takes too long, or after an operator's fault, the same one as an ordinary
 * activity: it keeps no workflow task open, and after a lost task it is not started again. It waits for as long as it takes
 * without events in the history: Temporal starts its next attempt. Once it was too slow for a local one, it stays ordinary.
 */
function callLocallyFirst<Input, Output>(
  run: RunInput,
  local: (input: Input) => Promise<Output>,
  remote: (input: Input) => Promise<Output>,
): (input: Input) => Promise<Output> {
  let wasTooSlow = false;
  return async (input) => {
    if (wasTooSlow) return remote(input);
    try {
      return await local(input);
    } catch (error) {
      if (!(error instanceof ApplicationFailure)) throw error;
      const { details, type = 'Error', message } = error;
      wasTooSlow = isTooSlow(details);
      if (!wasTooSlow && !isOperatorFault(details)) throw error;
      if (!wasTooSlow) showDetails(run, `Waiting for the operator: ${message} (${type})`);
      return remote(input);
    }
  };
}

const recording = proxyLocalActivities<RunActivities>(journalOptions);

type RunActivityResult<Name extends keyof RunActivities> = Awaited<ReturnType<RunActivities[Name]>>;
type BarrierActivityResult = RunActivityResult<'exportWhenSettled'>;
type EndedRun = RunActivityResult<'signalRunEnd'>;

/**
 * Exports one interval: waits until the source has settled, then counts, exports and publishes. The journal decides what
 * each step records. If the run already has a terminal status there, the workflow ends without an error. A failed or
 * cancelled run also fails or cancels its execution, so that the Temporal UI shows the same status as exportd. An export
 * of very many parts continues as new from time to time, each time with a new row in `batch_export_runs`.
 * @returns how it ended, for the Temporal UI
 * @throws ApplicationFailure `InvalidInput`, or the status of the run; CancelledFailure
 */
export async function batchExportRun(input: RunInput): Promise<EndedRun> {
  // A manual start may pass any input.
  if (!isRunInput(input))
    throw ApplicationFailure.nonRetryable('The input needs a run_id and limits.', 'InvalidInput');
  let { run_id } = input;
  let exported: ExportedInterval = {};
  let outcome: ReturnType<typeof outcomeOf>;
  try {
    exported = await exportInterval(input);
    const { continued } = exported;
    // The new run is current now, so a cancellation that arrived in the meantime applies to it.
    run_id = continued?.run_id ?? run_id;
    if (continued && CancellationScope.current().consideredCancelled)
      throw new CancelledFailure('Cancelled while continuing as new.');
  } catch (error) {
    outcome = outcomeOf(error);
    if (outcome === undefined) throw error;
  }
  const { continued } = exported;
  if (continued && outcome === undefined) return continueAsNewRun(continued, input);
  if (outcome !== undefined && outcome !== 'already_ended') {
    const recorded = await recordOutcome(run_id, outcome);
    if ('renewed' in recorded)
      return continueAsNew<typeof batchExportRun>({ ...input, details: recorded.details });
    outcome = recorded;
  }
  const ended =
    exported.ended ?? (await CancellationScope.nonCancellable(() => recording.signalRunEnd({ run_id })));
  const { status, latest_error } = ended;
  showStatus(input, status, endText(ended));
  // A step of a run that was cancelled in the meantime fails because the run has ended, or is cancelled, whichever is first.
  if (status === 'Cancelled' && CancellationScope.current().consideredCancelled)
    throw new CancelledFailure(latest_error ?? cancelledInTemporal);
  if (outcome === undefined || outcome === 'already_ended' || outcome.status !== status) return ended;
  throw status === 'Cancelled'
    ? new CancelledFailure(outcome.latest_error)
    : ApplicationFailure.nonRetryable(outcome.latest_error, status);
}

/** `Completed: 4,933 rows`, or the error of a run that did not complete. */
function endText({ status, latest_error, rows }: EndedRun): string {
  if (latest_error !== null) return `${status}: ${latest_error}`;
  if (typeof rows === 'number') return `${status}: ${rowsText(rows)}`;
  return status === 'Completed' ? 'Completed: the bucket has these rows already' : status;
}

/**
 * Records how a run ended. `renewed`: it does not end, since it waited for the operator, and that time does not count. The
 * next execution has new time limits and continues where this one stopped.
 */
async function recordOutcome(
  run_id: string,
  outcome: FailedOutcome,
): Promise<FailedOutcome | RunActivityResult<'recordRunOutcome'>> {
  const execution_id = workflowInfo().runId;
  const record = (recorded: FailedOutcome) =>
    CancellationScope.nonCancellable(() =>
      recording.recordRunOutcome.executeWithOptions(
        { summary: truncate(`${recorded.status}: ${recorded.latest_error}`) },
        [{ run_id, execution_id, ...recorded }],
      ),
    );
  const recorded = await record(outcome);
  if (!recorded.renewed) return outcome;
  if (!CancellationScope.current().consideredCancelled) return recorded;
  const cancelled = { status: 'Cancelled', latest_error: cancelledInTemporal } as const;
  await record(cancelled);
  return cancelled;
}

/** What became of an interval. Without a field the run has completed, and those that wait for it do not know yet. */
interface ExportedInterval {
  /** The run to continue as, when rows are left. */
  readonly continued?: RunActivityResult<'continueRun'>;
  /** How a small run has ended; those that wait for it know. */
  readonly ended?: EndedRun;
}

/** The calls that check and count the source. */
interface SettlingSource extends Pick<RunActivities, 'countRows'> {
  /** A small run may end with it. */
  readonly checkBarrier: (
    check: Parameters<RunActivities['checkBarrier']>[0],
  ) => Promise<BarrierActivityResult>;
}

/** Exports and publishes an interval. */
async function exportInterval(input: RunInput): Promise<ExportedInterval> {
  const { run_id } = input;
  const local = proxyLocalActivities<RunActivities>(sourceOptions(input.limits));
  const remote = proxyActivities<RunActivities>(remoteSourceOptions(input));
  const { fairnessKey: project = '', priorityKey: priority } = workflowInfo().priority ?? {};
  const order = { project, priority, data_interval_end: input.data_interval_end };
  const exportWhenSettled = (check: Parameters<RunActivities['checkBarrier']>[0]) =>
    cancellableByJournal(run_id, () =>
      local.exportWhenSettled.executeWithOptions({ summary: 'Check, count, and export of few rows' }, [
        { ...check, order },
      ]),
    );
  const source: SettlingSource = {
    checkBarrier: callLocallyFirst(input, exportWhenSettled, remote.checkBarrier),
    countRows: callLocallyFirst(input, local.countRows, remote.countRows),
  };
  const counted = input.counted
    ? { ...input.counted, is_small: false, check_replacement: false }
    : await countSettledRows(source, input);
  if ('ended' in counted) return counted;
  const { rows, ranges, is_small, check_replacement } = counted;
  const data = proxyActivities<ExportActivities>({ ...exportOptions(input), summary: rowsText(rows) });
  if (check_replacement) {
    showDetails(input, 'Comparing the source with the rows that were exported before');
    if ((await data.checkReplacement({ run_id })) === 'unchanged') return {};
  }
  if (is_small) {
    showDetails(input, `Exporting ${rowsText(rows)}`);
    const small = await cancellableByJournal(run_id, () => recording.completeSmallRun({ run_id, order }));
    if (small.ended) return small;
  }
  if (rows > 0) {
    showStatus(input, 'Running', `Exporting ${rowsText(rows)}${ranges > 1 ? ` in ${ranges} ranges` : ''}`);
    const { ranges_at_once, publish_with_rows } = input.limits;
    const exported =
      ranges > 1
        ? { finished: await exportRanges(data, run_id, ranges, ranges_at_once) }
        : rows > publish_with_rows
          ? await data.exportInterval({ run_id })
          : await cancellableByJournal(run_id, () => data.exportInterval({ run_id, publishes: true }));
    if ('published' in exported) return {};
    // This execution has sent its share of parts, and rows are left.
    if (!exported.finished)
      return {
        continued: await CancellationScope.nonCancellable(() => recording.continueRun({ run_id })),
      };
  }
  showDetails(input, `Publishing the manifest of ${rowsText(rows)}`);
  await cancellableByJournal(run_id, () => data.publishManifest({ run_id }));
  return {};
}

/**
 * Runs the last steps of a run. If the execution is cancelled, the journal decides whether they stop: it is too late once
 * publishing is claimed, because the manifest may be visible.
 */
async function cancellableByJournal<Result>(run_id: string, steps: () => Promise<Result>): Promise<Result> {
  const { cancelRequested } = CancellationScope.current();
  return CancellationScope.nonCancellable(async () => {
    const scope = new CancellationScope();
    let areOver = false;
    const cancel = async (): Promise<void> => {
      if (areOver) return;
      const { cancelled } = await recording.cancelUnlessPublishing({ run_id, reason: cancelledInTemporal });
      if (cancelled) scope.cancel();
    };
    // Settles only when the execution is cancelled.
    cancelRequested.catch(cancel);
    try {
      return await scope.run(steps);
    } finally {
      areOver = true;
    }
  });
}

/** Continues as new for the next run of the interval, whose id goes to the memo and the search attributes. */
function continueAsNewRun(
  { run_id, rows, ranges, details }: RunActivityResult<'continueRun'>,
  input: RunInput,
): Promise<never> {
  showStatus(input, 'ContinuedAsNew', 'Continued as a new execution');
  const { memo, typedSearchAttributes } = workflowInfo();
  const continueAs = makeContinueAsNewFunc<typeof batchExportRun>({
    memo: { ...memo, run_id },
    typedSearchAttributes: typedSearchAttributes.updateCopy([
      { key: searchAttributes.run, value: run_id },
      { key: searchAttributes.status, value: 'Starting' },
    ]),
  });
  return continueAs({ ...input, run_id, counted: { rows, ranges }, details });
}

/**
 * Counts the rows of the interval once its source has settled, or after the settle timeout. A small run may have ended with
 * that.
 */
async function countSettledRows(
  source: SettlingSource,
  input: RunInput,
): Promise<CountedRows | { readonly ended: EndedRun }> {
  const { counted, ended, ...waited } = await waitForTransactions(source, input);
  if (ended) return { ended };
  return counted ?? source.countRows({ run_id: input.run_id, ...waited });
}

/** Waits until no open transaction of the source can add rows to the interval, or until the settle timeout. */
async function waitForTransactions(
  source: Pick<SettlingSource, 'checkBarrier'>,
  input: RunInput,
): Promise<Omit<CountInput, 'run_id'> & Pick<BarrierActivityResult, 'counted' | 'ended'>> {
  const { run_id, limits } = input;
  showDetails(input, 'Waiting for the source to settle');
  let check: BarrierActivityResult = {
    state: { phase: 'settling', ...(input.has_waited_to_settle === true && { checked: true }) },
    wait_ms: 0,
    blocked_by: [],
  };
  let waitingSince: number | undefined;
  let endsAt = workflowInfo().runStartTime.getTime() + limits.timeout_ms;
  for (;;) {
    // In workflows Date.now() is deterministic: replays return the recorded time.
    const askedAt = Date.now();
    check = await source.checkBarrier({ run_id, state: check.state });
    if (check.waits_for_turn) {
      await sleep(check.wait_ms, until(check.wait_ms, 'its turn in a worker'));
      // Only the wait for the source is limited.
      endsAt += Date.now() - askedAt;
      continue;
    }
    if (check.state.phase === 'open') {
      const { counted, ended } = check;
      return { settled: true, blocked_by: [], ...(counted && { counted }), ...(ended && { ended }) };
    }
    if (check.state.phase !== 'settling') waitingSince ??= Date.now();
    const waitedMs = waitingSince === undefined ? 0 : Date.now() - waitingSince;
    if (check.state.phase !== 'settling' && waitedMs >= limits.settle_timeout_ms)
      return { settled: false, blocked_by: check.blocked_by, barrier: check.state };
    const remainingMs = endsAt - Date.now();
    if (remainingMs <= 0)
      throw ApplicationFailure.nonRetryable(
        'The run exceeded its timeout (EXPORTD_RUN_TIMEOUT).',
        runTimedOut,
      );
    if (check.blocked_by.length > 0) showDetails(input, `Waiting for ${check.blocked_by.join(', ')}`);
    const sleepMs = Math.max(1, Math.min(remainingMs, barrierPollMs(check.wait_ms, waitedMs)));
    const blockers =
      check.blocked_by.length > 0 ? check.blocked_by.join(', ') : 'rows that may still be committed';
    await sleep(sleepMs, until(sleepMs, blockers));
  }
}

function showStatus(run: RunInput, status: string, progress: string): void {
  upsertSearchAttributes([{ key: searchAttributes.status, value: status }]);
  showDetails(run, progress);
}

/** Says in the Temporal UI how far the run is, and after a continuation also what it is. */
const showDetails = ({ details }: RunInput, progress: string): void =>
  setCurrentDetails(withDetails(progress, details));
