import { commandIdOf, type ReceivedSignal, wakeSignal } from '../src/contract/workflow_inputs.ts';

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
