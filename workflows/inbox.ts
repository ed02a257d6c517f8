import { setDefaultSignalHandler, workflowInfo } from '@temporalio/workflow';
import {
  commandIdOf,
  type ReceivedSignal,
  type ScheduleInput,
  wakeSignal,
} from '../src/contract/workflow_inputs.ts';
import { maxCarriedCommandSignals } from './activity_options.ts';
import { createSignalCounter } from './signal_counter.ts';

/**
 * Receives the signals of a schedule workflow, in order of arrival. A single default handler receives signals of all
 * names: separate handlers would reorder the signals that wait when an execution starts.
 */
export function createInbox(previous: Pick<ScheduleInput, 'ordinal' | 'signals'>) {
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
