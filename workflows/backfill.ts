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
import type { BackfillActivities } from '../activities/schedule.ts';
import { isId, type BackfillInput } from '../src/contract/workflow_inputs.ts';
import { blockedRunRetryMs, journalOptions, maxSleepMs, searchAttributes } from './activity_options.ts';

const activities = proxyLocalActivities<BackfillActivities>(journalOptions);

/**
 * Runs the intervals of a backfill: as many runs at a time as its concurrency allows, the next as soon as one signals
 * its end. Like the schedule it decides nothing and keeps no state. Completes when the backfill has ended.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportBackfill(input: BackfillInput | undefined): Promise<void> {
  const backfill_id = input?.backfill_id;
  // A manual start may pass any input.
  if (!isId(backfill_id))
    throw ApplicationFailure.nonRetryable('The input needs a backfill_id.', 'InvalidInput');
  let woken = false;
  setDefaultSignalHandler(() => {
    woken = true;
  });
  const { typedSearchAttributes } = workflowInfo();
  let currentStatus = typedSearchAttributes.get(searchAttributes.status);
  for (let steps = 1; ; steps += 1) {
    woken = false;
    const step = await activities.advanceBackfill({ backfill_id });
    setCurrentDetails(
      `${step.runs_created} of ${step.total_runs} intervals started${step.status === 'Paused' ? ', paused' : ''}`,
    );
    if (step.status !== currentStatus)
      upsertSearchAttributes([{ key: searchAttributes.status, value: step.status }]);
    currentStatus = step.status;
    if (step.ended) return;
    if (workflowInfo().continueAsNewSuggested || steps >= step.continue_after)
      await continueAsNew<typeof batchExportBackfill>({ backfill_id });
    await condition(() => woken, step.blocked_runs > 0 ? blockedRunRetryMs : maxSleepMs.backfill);
  }
}
