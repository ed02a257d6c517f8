import { setDefaultSignalHandler, workflowInfo } from '@temporalio/workflow';
import type { ReceivedSignal } from '../src/decisions/signals.ts';
import { wakeSignal, type ScheduleInput } from './messages.ts';

/** The signals of a schedule workflow, in the order of their arrival. */
export interface Inbox {
  /** Whether anything arrived since the last `take`, be it only a wake-up, or is left from before it. */
  hasNews(): boolean;
  /** Up to `limit` signals sent by hand, oldest first; the rest stays. */
  take(limit: number): ReceivedSignal[];
  /** How many signals sent by hand wait. */
  waiting(): number;
  /** How many commands this execution has received. */
  commands(): number;
  /** What the next execution of the chain goes on with. */
  carry(): Pick<ScheduleInput, 'ordinal' | 'signals'>;
}

/**
 * Opens the inbox. One default handler takes every name: handlers by name would reorder the signals that wait when an
 * execution starts. A signal that names a stored command needs no place in the queue, since every step reads those.
 */
export function openInbox(carried: Pick<ScheduleInput, 'ordinal' | 'signals'>): Inbox {
  const queue = [...(carried.signals ?? [])];
  // What a reset keeps, so that a repeated signal is recognised in the new execution.
  const chain = workflowInfo().firstExecutionRunId;
  let ordinal = carried.ordinal ?? 0;
  let commands = 0;
  let news = false;
  setDefaultSignalHandler((name, ...inputs) => {
    const [input] = inputs;
    ordinal += 1;
    news = true;
    if (name === wakeSignal) return;
    commands += 1;
    if (!namesCommand(input)) queue.push({ name, ordinal, chain, input: input ?? null });
  });
  return {
    hasNews: () => news || queue.length > 0,
    take: (limit) => {
      news = false;
      return queue.splice(0, limit);
    },
    waiting: () => queue.length,
    commands: () => commands,
    carry: () => ({ ordinal, signals: queue }),
  };
}

const namesCommand = (input: unknown): boolean =>
  typeof input === 'object' &&
  input !== null &&
  'command_id' in input &&
  typeof input.command_id === 'string';
