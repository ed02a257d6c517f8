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
import type { AppendActivities } from '../activities/schedule.ts';
import { isId } from '../src/contract/workflow_ids.ts';
import type { BackfillInput } from '../src/contract/workflow_inputs.ts';
import { busyIntervalMs, longestSleepMs, recordingPolicy } from './policies.ts';
import { searchAttributes } from './search_attributes.ts';

const activities = proxyLocalActivities<AppendActivities>(recordingPolicy);

/**
 * Walks a backfill through its intervals: as many runs at once as its concurrency allows, the next as soon as one
 * reports its end. Like the schedule it decides and holds nothing. Ends when the backfill has ended.
 */
export async function batchExportBackfill(input: BackfillInput | undefined): Promise<void> {
  const backfill_id = input?.backfill_id;
  // May have been started by hand with anything.
  if (!isId(backfill_id))
    throw ApplicationFailure.nonRetryable('The input has to name a backfill.', 'InvalidInput');
  let woken = false;
  setDefaultSignalHandler(() => {
    woken = true;
  });
  const { typedSearchAttributes } = workflowInfo();
  let shown = typedSearchAttributes.get(searchAttributes.status);
  for (let steps = 1; ; steps += 1) {
    woken = false;
    const step = await activities.takeBackfillStep({ backfill_id });
    setCurrentDetails(`${step.opened} of ${step.total} intervals begun${step.paused ? ', paused' : ''}`);
    // Steps of earlier versions did not say it.
    const { status = shown } = step;
    if (status !== undefined && status !== shown)
      upsertSearchAttributes([{ key: searchAttributes.status, value: status }]);
    shown = status;
    if (step.ended) return;
    if (workflowInfo().continueAsNewSuggested || steps >= step.continue_after)
      await continueAsNew<typeof batchExportBackfill>({ backfill_id });
    await condition(() => woken, step.busy > 0 ? busyIntervalMs : longestSleepMs.backfill);
  }
}
