import {
  ApplicationFailure,
  condition,
  continueAsNew,
  proxyLocalActivities,
  setCurrentDetails,
  setDefaultSignalHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackfillInput } from '../src/contract/workflow_inputs.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import { blockedRunRetryMs, journalOptions, maxSleepMs, searchAttributes } from './activity_options.ts';
import { until, withDetails } from './summaries.ts';
import type { BackfillActivities, BackfillStepOutcome } from '../activities/backfill.ts';

/** What the Temporal UI says of a backfill. A repair finds out as it goes how many intervals it has. */
function progressOf({ runs_created, runs_ended, total_runs, done_at, status }: BackfillStepOutcome): string {
  if (total_runs === 0) return `${runs_created} ${runs_created === 1 ? 'interval' : 'intervals'} started`;
  const done = `${runs_ended} of ${total_runs} ${total_runs === 1 ? 'interval' : 'intervals'}`;
  if (status === 'Paused') return `${done}, paused`;
  // Not in histories that were recorded before.
  return typeof done_at === 'string'
    ? `${done}, done about ${done_at.slice(0, 16).replace('T', ' ')} UTC`
    : done;
}

const backfillActivities = proxyLocalActivities<BackfillActivities>(journalOptions);

/**
 * Starts the first runs of a backfill, as many as its concurrency allows; a run that ends starts the next one itself. Steps
 * that follow a signal, or a minute without one, do the same. Like the schedule it decides nothing and keeps no state.
 * Completes when the backfill has ended.
 * @returns how far it came, for the Temporal UI
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportBackfill(
  input: BackfillInput | undefined,
): Promise<Pick<BackfillStepOutcome, 'status' | 'runs_ended' | 'total_runs'>> {
  const backfill_id = input?.backfill_id;
  // A manual start may pass any input.
  if (!isId(backfill_id))
    throw ApplicationFailure.nonRetryable('The input needs a backfill_id.', 'InvalidInput');
  let woken = false;
  setDefaultSignalHandler(() => {
    woken = true;
  });
  const { typedSearchAttributes, continuedFromExecutionRunId } = workflowInfo();
  let details: string | undefined;
  let currentStatus = typedSearchAttributes.get(searchAttributes.status);
  for (let steps = 1; ; steps += 1) {
    woken = false;
    // Temporal drops the details that the first execution was started with.
    const describes = continuedFromExecutionRunId !== undefined && steps === 1;
    const step = await backfillActivities.advanceBackfill({ backfill_id, describes });
    details ??= step.details;
    setCurrentDetails(withDetails(progressOf(step), details));
    if (step.status !== currentStatus)
      upsertSearchAttributes([{ key: searchAttributes.status, value: step.status }]);
    currentStatus = step.status;
    const { status, runs_ended, total_runs } = step;
    if (step.ended) return { status, runs_ended, total_runs };
    if (workflowInfo().continueAsNewSuggested || steps >= step.continue_after)
      await continueAsNew<typeof batchExportBackfill>({ backfill_id });
    const isBlocked = step.blocked_runs > 0;
    const sleepMs = isBlocked ? blockedRunRetryMs : maxSleepMs.backfill;
    const purpose = isBlocked ? 'another run of its interval to close' : 'a run to end, at the latest';
    await condition(() => woken, sleepMs, until(sleepMs, purpose));
  }
}
