import { isObject } from './is_object.ts';

/** A signal as a schedule workflow received it. */
export interface ReceivedSignal {
  readonly name: string;
  /** Position among all signals of the workflow's chain of executions. Identifies a repeated signal. */
  readonly ordinal: number;
  /** Identity of the chain: the run id of its first execution, which a reset keeps. */
  readonly chain: string;
  /** The signal's input. Nothing is known of it when the signal was sent manually. */
  readonly input: unknown;
}

/** The signal that wakes a schedule or a backfill so that it checks the control database. It has no input. */
export const wakeSignal = 'wake';

/** Returns the command id in a signal that the API server sent; undefined for a manual signal without one. */
export const commandIdOf = (input: unknown): string | undefined =>
  isObject(input) && typeof input.command_id === 'string' ? input.command_id : undefined;

export const isReceivedSignal = (value: unknown): value is ReceivedSignal =>
  isObject(value) &&
  typeof value.name === 'string' &&
  Number.isSafeInteger(value.ordinal) &&
  typeof value.chain === 'string';
