import { setDefaultSignalHandler, workflowInfo } from '@temporalio/workflow';
import { createSignalCounter } from './hand_signals.ts';
import { commandIdOf, type ReceivedSignal, wakeSignal } from '../src/contract/signals.ts';
import type { ScheduleInput } from '../src/contract/workflow_inputs.ts';
import { carriedNamed } from './policies.ts';

/** The signals of a schedule workflow, in the order of their arrival. */
export interface Inbox {
  /** Whether anything arrived since the last `take`, be it only a wake-up, or is left from before it. */
  hasNews(): boolean;
  /** How many signals of any kind arrived since the last `take`. */
  arrived(): number;
  /** Up to `limit` signals sent by hand, oldest first; the rest stays. */
  take(limit: number): ReceivedSignal[];
  /** Up to `limit` signals that name a stored command, oldest first. None of them waits to be acted on. */
  takeNamed(limit: number): ReceivedSignal[];
  /** How many signals sent by hand wait. */
  waiting(): number;
  /** How many commands this execution has received. */
  commands(): number;
  /** What the next execution of the chain goes on with. */
  carry(): Pick<ScheduleInput, 'ordinal' | 'signals'>;
}

/**
 * Opens the inbox. One default handler takes every name: handlers by name would reorder the signals that wait when an
 * execution starts.
 */
export function openInbox(carried: Pick<ScheduleInput, 'ordinal' | 'signals'>): Inbox {
  const queue = (carried.signals ?? []).filter(({ input }) => commandIdOf(input) === undefined);
  const named = (carried.signals ?? []).filter(({ input }) => commandIdOf(input) !== undefined);
  // What a reset keeps, so that a repeated signal is recognised in the new execution.
  const counter = createSignalCounter(workflowInfo().firstExecutionRunId, carried.ordinal);
  let commands = 0;
  let arrived = 0;
  setDefaultSignalHandler((name, ...inputs) => {
    arrived += 1;
    if (name !== wakeSignal) commands += 1;
    const received = counter.receive(name, inputs[0]);
    if (received.is === 'command') queue.push(received.signal);
    if (received.is === 'named') named.push(received.signal);
  });
  return {
    hasNews: () => arrived > 0 || queue.length > 0,
    arrived: () => arrived,
    take: (limit) => {
      arrived = 0;
      return queue.splice(0, limit);
    },
    takeNamed: (limit) => named.splice(0, limit),
    waiting: () => queue.length,
    commands: () => commands,
    carry: () => ({ ordinal: counter.ordinal(), signals: [...queue, ...named.slice(0, carriedNamed)] }),
  };
}
