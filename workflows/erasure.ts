import {
  ApplicationFailure,
  continueAsNew,
  proxyActivities,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { ErasureActivities } from '../activities/erasure.ts';
import { type ErasureInput, isId } from '../src/contract/workflow_inputs.ts';
import { erasureOptions } from './activity_options.ts';

/**
 * Erases persons from what a project has exported, part by part, until nothing is left to do. Like a backfill it decides nothing
 * and keeps no state: the journal has it.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportErasure(input: ErasureInput | undefined): Promise<void> {
  // A manual start may pass any input.
  if (
    !isId(input?.erasure_id) ||
    typeof input.task_queue !== 'string' ||
    typeof input.heartbeat_timeout_ms !== 'number'
  )
    throw ApplicationFailure.nonRetryable(
      'The input needs an erasure_id, a task_queue and a heartbeat_timeout_ms.',
      'InvalidInput',
    );
  const { advanceErasure } = proxyActivities<ErasureActivities>(erasureOptions(input));
  for (;;) {
    const { ended, wait_ms, details } = await advanceErasure({ erasure_id: input.erasure_id });
    setCurrentDetails(details);
    if (ended) return;
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof batchExportErasure>(input);
    await sleep(wait_ms);
  }
}
