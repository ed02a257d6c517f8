import { setDefaultSignalHandler, workflowInfo } from '@temporalio/workflow';
import { createSignalCounter } from './manual_signals.ts';
import {
  commandIdOf,
  type ReceivedSignal,
  type ScheduleInput,
  wakeSignal,
} from '../src/contract/workflow_inputs.ts';
import { maxCarriedCommandSignals } from './limits.ts';

/** The signals of a schedule workflow, in order of arrival. */
export interface Inbox {
  /** Whether any signal, even a wake-up, arrived since the last `takeManualSignals`, or manual signals are waiting. */
  hasPending(): boolean;
  /** How many signals, including wake-ups, arrived since the last `takeManualSignals`. */
  arrivedCount(): number;
  /** Removes and returns up to `limit` manual signals, oldest first. */
  takeManualSignals(limit: number): ReceivedSignal[];
  /** Removes and returns up to `limit` signals with a command id, oldest first. Their commands are already stored. */
  takeCommandSignals(limit: number): ReceivedSignal[];
  /** How many manual signals wait. */
  waitingCount(): number;
  /** How many signals except wake-ups this execution has received. */
  commandCount(): number;
  /** State that the next execution of the chain starts with. */
  carriedState(): Pick<ScheduleInput, 'ordinal' | 'signals'>;
}

/**
 * Creates the inbox and starts to receive. A single default handler receives signals of all names: separate handlers
 * would reorder the signals that wait when an execution starts.
 */
export function createInbox(previous: Pick<ScheduleInput, 'ordinal' | 'signals'>): Inbox {
  const manualSignals = (previous.signals ?? []).filter(({ input }) => commandIdOf(input) === undefined);
  const commandSignals = (previous.signals ?? []).filter(({ input }) => commandIdOf(input) !== undefined);
  // A reset keeps this run id, so the new execution recognises repeated signals.
  const counter = createSignalCounter(workflowInfo().firstExecutionRunId, previous.ordinal);
  let commandCount = 0;
  let arrivedCount = 0;
  setDefaultSignalHandler((name, ...inputs) => {
    arrivedCount += 1;
    if (name !== wakeSignal) commandCount += 1;
    const received = counter.receive(name, inputs[0]);
    if (received.type === 'manual') manualSignals.push(received.signal);
    if (received.type === 'stored_command') commandSignals.push(received.signal);
  });
  return {
    hasPending: () => arrivedCount > 0 || manualSignals.length > 0,
    arrivedCount: () => arrivedCount,
    takeManualSignals: (limit) => {
      arrivedCount = 0;
      return manualSignals.splice(0, limit);
    },
    takeCommandSignals: (limit) => commandSignals.splice(0, limit),
    waitingCount: () => manualSignals.length,
    commandCount: () => commandCount,
    carriedState: () => ({
      ordinal: counter.ordinal(),
      signals: [...manualSignals, ...commandSignals.slice(0, maxCarriedCommandSignals)],
    }),
  };
}
