import type { ReceivedSignal } from '../src/decisions/signals.ts';
import { wakeSignal } from './messages.ts';

/** Numbers the signals of a schedule's chain of executions in the order of their arrival. */
export interface SignalCounter {
  /** How many the chain has received. */
  ordinal(): number;
  /**
   * Counts one signal in.
   * @returns it as one that was sent by hand; undefined for a wake-up and for one that names a stored command, neither
   * of which needs a place in a queue, since every step reads the stored commands.
   */
  receive(name: string, input: unknown): ReceivedSignal | undefined;
}

/**
 * Begins where the former execution of the chain ended. The workflow counts with it, and so does whoever reads the
 * signals of an execution that failed out of its history: both give a signal the same place, and so the same id.
 */
export function createSignalCounter(chain: string, carried: number | undefined): SignalCounter {
  let ordinal = carried ?? 0;
  return {
    ordinal: () => ordinal,
    receive: (name, input) => {
      ordinal += 1;
      if (name === wakeSignal || namesCommand(input)) return undefined;
      return { name, ordinal, chain, input: input ?? null };
    },
  };
}

const namesCommand = (input: unknown): boolean =>
  typeof input === 'object' &&
  input !== null &&
  'command_id' in input &&
  typeof input.command_id === 'string';
