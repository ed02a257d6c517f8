import {
  ApplicationFailure,
  condition,
  continueAsNew,
  patched,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { AppendActivities, ScheduleStepOutcome } from '../activities/schedule.ts';
import { openInbox } from './inbox.ts';
import { isScheduleInput, type ScheduleInput } from '../src/contract/workflow_inputs.ts';
import {
  busyIntervalMs,
  carriedSignals,
  commandsPerLocalStep,
  commandsPerRemoteStep,
  floodSignals,
  longestSleepMs,
  recordingPolicy,
  remoteRecordingPolicy,
  signalsPerStep,
} from './policies.ts';
import { searchAttributes } from './search_attributes.ts';

type ScheduleActivities = Pick<AppendActivities, 'takeScheduleStep' | 'startAndCancelRuns'>;

const local = proxyLocalActivities<ScheduleActivities>(recordingPolicy);
/**
 * For signals sent by hand and for a flood of commands. A local activity keeps the workflow task open; when more than 100
 * signals arrive meanwhile, the server fails the task (its `history.maximumBufferedEventsBatch`), and what SDK 1.24 goes
 * on with cannot be replayed.
 */
const remote = proxyActivities<ScheduleActivities>(remoteRecordingPolicy);

/**
 * Keeps one export's schedule: passes signals on in order, starts the runs that are due, sleeps until the next. It
 * decides nothing and holds nothing: every decision is made in the journal, and all that it knows is read there, so it
 * may end, restart or be reset at any time. Ends when the export is deleted, or was never created.
 */
export async function batchExportSchedule(input: ScheduleInput): Promise<void> {
  // May have been started by hand with anything.
  if (!isScheduleInput(input))
    throw ApplicationFailure.nonRetryable(
      'The input has to name a batch export; its other members are what one execution hands to the next.',
      'InvalidInput',
    );
  const { batch_export_id } = input;
  const inbox = openInbox(input);
  const show = createShow();
  let more = input.flood === true;
  for (;;) {
    const mayBeMany = more || inbox.waiting() > 0 || inbox.arrived() >= floodSignals;
    const isRemote = mayBeMany && patched('remote steps');
    const activities = isRemote ? remote : local;
    const signals = inbox.take(signalsPerStep);
    const step: ScheduleStepOutcome = await activities.takeScheduleStep({
      batch_export_id,
      signals,
      named: inbox.takeNamed(signalsPerStep),
      most_commands: isRemote ? commandsPerRemoteStep : commandsPerLocalStep,
    });
    show(step);
    const { cancel_run_ids, wake_backfill_ids } = step;
    const hasErrands = step.runs_to_start > 0 || cancel_run_ids.length > 0 || wake_backfill_ids.length > 0;
    const { busy } = hasErrands
      ? await activities.startAndCancelRuns({ batch_export_id, cancel_run_ids, wake_backfill_ids })
      : { busy: 0 };
    more = step.more === true || inbox.waiting() > signalsPerStep;
    const isLong = workflowInfo().continueAsNewSuggested || inbox.commands() >= step.continue_after;
    // A flood may last, so its end is not waited for; but what waits has to fit into the input of the next execution.
    const mayContinue = inbox.waiting() <= carriedSignals;
    if (more && !(isLong && mayContinue && patched('continue in a flood'))) continue;
    if (!more && step.status !== 'live' && !inbox.hasNews()) return;
    if (isLong)
      await continueAsNew<typeof batchExportSchedule>({
        batch_export_id,
        ...inbox.carry(),
        ...(more && { flood: true }),
      });
    const sleepMs = Math.min(
      step.wake_in_ms ?? longestSleepMs.schedule,
      busy > 0 ? busyIntervalMs : longestSleepMs.schedule,
    );
    // At least a little, since a time read in the database and a timer of Temporal never agree to the millisecond.
    await condition(() => inbox.hasNews(), Math.max(20, sleepMs));
  }
}

/** Shows a step in the Temporal UI; search attributes only when they changed, since each change is an event. */
function createShow(): (step: ScheduleStepOutcome) => void {
  let shown = '';
  return ({ summary, attributes }) => {
    setCurrentDetails(summary);
    if (attributes === null || JSON.stringify(attributes) === shown) return;
    shown = JSON.stringify(attributes);
    upsertSearchAttributes([
      { key: searchAttributes.project, value: attributes.project },
      { key: searchAttributes.model, value: attributes.model },
      { key: searchAttributes.destination, value: attributes.destination },
      { key: searchAttributes.status, value: attributes.status },
    ]);
  };
}
