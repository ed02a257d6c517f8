import {
  ApplicationFailure,
  condition,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ScheduleActivities, ScheduleStepOutcome } from '../activities/schedule.ts';
import { isScheduleInput, type ReceivedSignal, type ScheduleInput } from '../src/contract/workflow_inputs.ts';
import {
  blockedRunRetryMs,
  commandsPerLocalStep,
  commandsPerRemoteStep,
  floodThreshold,
  journalOptions,
  maxCarriedManualSignals,
  maxSleepMs,
  remoteJournalOptions,
  searchAttributes,
  signalsPerStep,
  stepsPerExecution,
} from './activity_options.ts';
import { truncate, until } from './summaries.ts';
import { createInbox } from './inbox.ts';
import { traced } from './stack_traces.ts';

const local = proxyLocalActivities<ScheduleActivities>(journalOptions);
/**
 * For manual signals and floods of commands. A local activity keeps the workflow task open. When more than 100 signals
 * arrive in that time (`history.maximumBufferedEventsBatch`), the server fails the task, and SDK 1.24 then writes a
 * history that it cannot replay.
 */
const remote = proxyActivities<ScheduleActivities>(remoteJournalOptions);

/**
 * Runs the schedule of one export: forwards signals in order, starts due runs and sleeps until the next one is due. The
 * workflow decides nothing and keeps no state. Decisions are made in the journal, so it can be terminated,
 * restarted or reset at any time. Completes when the export is deleted or was never created.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportSchedule(input: ScheduleInput): Promise<void> {
  // A manual start may pass any input.
  if (!isScheduleInput(input))
    throw ApplicationFailure.nonRetryable(
      'The input needs a batch_export_id. All other fields are carried over from one execution to the next.',
      'InvalidInput',
    );
  const { batch_export_id } = input;
  const inbox = createInbox(input);
  const publishDetails = createDetailsPublisher();
  // Schedules that were created together, and take the same steps, do not all continue as new at once.
  const maxSteps = Math.ceil((stepsPerExecution * (1 + Math.random())) / 2);
  let more = input.is_flooding === true;
  for (let steps = 1; ; steps += 1) {
    const isRemote = more || inbox.waitingCount() > 0 || inbox.arrivedCount() >= floodThreshold;
    const activities = isRemote ? remote : local;
    const signals = inbox.takeManualSignals(signalsPerStep);
    const commandSignals = inbox.takeCommandSignals(signalsPerStep);
    const step: ScheduleStepOutcome = await activities.advanceSchedule.executeWithOptions(
      { summary: signalsText([...signals, ...commandSignals]) },
      [
        {
          batch_export_id,
          signals,
          command_signals: commandSignals,
          max_commands: isRemote ? commandsPerRemoteStep : commandsPerLocalStep,
        },
      ],
    );
    publishDetails(step);
    const { cancel_run_ids, wake_backfill_ids } = step;
    const { blocked_runs } =
      step.blocked_runs === null
        ? await activities.startAndCancelRuns.executeWithOptions({ summary: truncate(step.decided) }, [
            { batch_export_id, cancel_run_ids, wake_backfill_ids },
          ])
        : { blocked_runs: step.blocked_runs };
    more = step.has_more || inbox.waitingCount() > signalsPerStep;
    const isQuiet = !more && step.blocked_runs !== null;
    const isLong =
      workflowInfo().continueAsNewSuggested ||
      inbox.commandCount() >= step.continue_after ||
      (steps >= maxSteps && isQuiet);
    // Continue as new without waiting for the end of a flood, once the waiting signals fit into the next input.
    const mayContinue = inbox.waitingCount() <= maxCarriedManualSignals;
    if (more && !(isLong && mayContinue)) continue;
    if (!more && step.status !== 'live' && !inbox.hasPending()) return;
    if (isLong)
      await continueAsNew<typeof batchExportSchedule>({
        batch_export_id,
        ...inbox.carriedState(),
        ...(more && { is_flooding: true }),
      });
    const sleepMs = sleepOf(step, blocked_runs);
    if (sleepMs === null) await traced(condition(() => inbox.hasPending()));
    else await condition(() => inbox.hasPending(), sleepMs, until(sleepMs, step.waits_for));
  }
}

/** How long the schedule sleeps without a signal; null until there is one. */
function sleepOf(
  { wake_in_ms, waits_for_run }: Pick<ScheduleStepOutcome, 'wake_in_ms' | 'waits_for_run'>,
  blockedRuns: number,
): number | null {
  const limits = [
    ...(wake_in_ms === null ? [] : [wake_in_ms]),
    ...(waits_for_run ? [maxSleepMs.schedule] : []),
    ...(blockedRuns > 0 ? [blockedRunRetryMs] : []),
  ];
  // Never 0: the clocks of the database and of Temporal differ by milliseconds.
  return limits.length === 0 ? null : Math.max(20, Math.min(...limits));
}

/** What a step receives, for the Temporal UI: the names of the signals. What it decided is in its result and current details. */
const signalsText = (signals: readonly ReceivedSignal[]): string =>
  truncate(signals.length === 0 ? 'no commands' : [...new Set(signals.map(({ name }) => name))].join(', '));

/** Publishes a step to the Temporal UI. Updates search attributes only on changes, because each update is an event. */
function createDetailsPublisher(): (step: ScheduleStepOutcome) => void {
  let published = '';
  return ({ details, attributes }) => {
    if (details !== null) setCurrentDetails(details);
    if (attributes === null || JSON.stringify(attributes) === published) return;
    published = JSON.stringify(attributes);
    upsertSearchAttributes([
      { key: searchAttributes.project, value: attributes.project },
      { key: searchAttributes.name, value: attributes.name },
      { key: searchAttributes.model, value: attributes.model },
      { key: searchAttributes.destination, value: attributes.destination },
      { key: searchAttributes.status, value: attributes.status },
    ]);
  };
}
