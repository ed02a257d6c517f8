import { commandIdOf, type ReceivedSignal, wakeSignal } from '../src/contract/signals.ts';

/** Numbers the signals of a schedule's chain of executions in the order of their arrival. */
export interface SignalCounter {
  /** How many the chain has received. */
  ordinal(): number;
  /** Counts one signal in. */
  receive(name: string, input: unknown): CountedSignal;
}

/** What a signal is: a wake-up, one that names a command which should be stored, or a command that was sent by hand. */
export type CountedSignal =
  { readonly is: 'wake' } | { readonly is: 'named' | 'command'; readonly signal: ReceivedSignal };

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
      if (name === wakeSignal) return { is: 'wake' };
      const command_id = commandIdOf(input);
      return command_id === undefined
        ? { is: 'command', signal: { name, ordinal, chain, input: input ?? null } }
        : {
            is: 'named',
            signal: { name, ordinal, chain, input: { command_id: command_id.slice(0, longestId) } },
          };
    },
  };
}

/** More of what should be an id says nothing. */
const longestId = 100;
