import {
  ApplicationFailure,
  condition,
  continueAsNew,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setDefaultSignalHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  BackfillActivities,
  BackfillStepOutcome,
  ScheduleActivities,
  ScheduleStepOutcome,
} from '../activities/schedule.ts';
import {
  type BackfillInput,
  commandIdOf,
  isId,
  isScheduleInput,
  type ReceivedSignal,
  type ScheduleInput,
  wakeSignal,
} from '../src/contract/workflow_inputs.ts';
import {
  blockedRunRetryMs,
  commandsPerLocalStep,
  commandsPerRemoteStep,
  floodThreshold,
  journalOptions,
  maxCarriedCommandSignals,
  maxCarriedManualSignals,
  maxSleepMs,
  remoteJournalOptions,
  searchAttributes,
  signalsPerStep,
  stepsPerExecution,
} from './activity_options.ts';
import { truncate, until, withDetails } from './summaries.ts';

/** A signal: a wake-up, one with the id of a stored command, or a manual one that is itself a command. */
type CountedSignal =
  | { readonly type: 'wake' }
  | { readonly type: 'stored_command' | 'manual'; readonly signal: ReceivedSignal };

/**
 * Numbers the signals of a schedule's chain of executions in order of arrival, from where the previous execution stopped.
 * The workflow uses it, and so does the recovery of signals from the history of a failed execution: both give a signal
 * the same ordinal, and therefore the same id.
 * @param chain run id of the chain's first execution
 * @param carried how many signals the previous executions received
 */
export function createSignalCounter(chain: string, carried: number | undefined) {
  let ordinal = carried ?? 0;
  return {
    /** How many signals the chain has received. */
    ordinal: () => ordinal,
    /** Numbers and classifies one signal. */
    receive: (name: string, input: unknown, identity?: unknown): CountedSignal => {
      ordinal += 1;
      if (name === wakeSignal) return { type: 'wake' };
      const command_id = commandIdOf(input);
      return command_id === undefined
        ? {
            type: 'manual',
            signal: {
              name,
              ordinal,
              chain,
              input: input ?? null,
              ...(typeof identity === 'string' && { identity }),
            },
          }
        : {
            type: 'stored_command',
            signal: { name, ordinal, chain, input: { command_id: command_id.slice(0, maxIdLength) } },
          };
    },
  };
}

/** Longer ids are invalid and truncated, to keep workflow inputs small. */
const maxIdLength = 100;

/**
 * Receives the signals of a schedule workflow, in order of arrival. A single default handler receives signals of all
 * names: separate handlers would reorder the signals that wait when an execution starts.
 */
function createInbox(previous: Pick<ScheduleInput, 'ordinal' | 'signals'>) {
  const manualSignals = (previous.signals ?? []).filter(({ input }) => commandIdOf(input) === undefined);
  const commandSignals = (previous.signals ?? []).filter(({ input }) => commandIdOf(input) !== undefined);
  // A reset keeps this run id, so the new execution recognises repeated signals.
  const counter = createSignalCounter(workflowInfo().firstExecutionRunId, previous.ordinal);
  let commandCount = 0;
  let arrivedCount = 0;
  setDefaultSignalHandler((name, ...inputs) => {
    arrivedCount += 1;
    if (name !== wakeSignal) commandCount += 1;
    const received = counter.receive(name, inputs[0], inputs[1]);
    if (received.type === 'manual') manualSignals.push(received.signal);
    if (received.type === 'stored_command') commandSignals.push(received.signal);
  });
  return {
    /** Whether any signal, even a wake-up, arrived since the last `takeManualSignals`, or manual signals are waiting. */
    hasPending: () => arrivedCount > 0 || manualSignals.length > 0,
    /** How many signals, including wake-ups, arrived since the last `takeManualSignals`. */
    arrivedCount: () => arrivedCount,
    /** Removes and returns up to `limit` manual signals, oldest first. */
    takeManualSignals: (limit: number): ReceivedSignal[] => {
      arrivedCount = 0;
      return manualSignals.splice(0, limit);
    },
    /** Removes and returns up to `limit` signals with a command id, oldest first. Their commands are already stored. */
    takeCommandSignals: (limit: number): ReceivedSignal[] => commandSignals.splice(0, limit),
    /** How many manual signals wait. */
    waitingCount: () => manualSignals.length,
    /** How many signals except wake-ups this execution has received. */
    commandCount: () => commandCount,
    /** State that the next execution of the chain starts with. */
    carriedState: (): Pick<ScheduleInput, 'ordinal' | 'signals'> => ({
      ordinal: counter.ordinal(),
      signals: [...manualSignals, ...commandSignals.slice(0, maxCarriedCommandSignals)],
    }),
  };
}

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
    if (sleepMs === null) await condition(() => inbox.hasPending());
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

/** What the Temporal UI says of a backfill. A repair finds out as it goes how many intervals it has. */
function progressOf({ runs_created, runs_ended, total_runs, done_at, status }: BackfillStepOutcome): string {
  if (total_runs === 0) return `${runs_created} ${runs_created === 1 ? 'interval' : 'intervals'} started`;
  const done = `${runs_ended} of ${total_runs} intervals`;
  if (status === 'Paused') return `${done}, paused`;
  // Not in histories that were recorded before.
  return typeof done_at === 'string'
    ? `${done}, done about ${done_at.slice(0, 16).replace('T', ' ')} UTC`
    : done;
}

const backfillActivities = proxyLocalActivities<BackfillActivities>(journalOptions);

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
    if (step.ended) return;
    if (workflowInfo().continueAsNewSuggested || steps >= step.continue_after)
      await continueAsNew<typeof batchExportBackfill>({ backfill_id });
    const isBlocked = step.blocked_runs > 0;
    const sleepMs = isBlocked ? blockedRunRetryMs : maxSleepMs.backfill;
    const purpose = isBlocked ? 'another run of its interval to close' : 'a run to end, at the latest';
    await condition(() => woken, sleepMs, until(sleepMs, purpose));
  }
}
