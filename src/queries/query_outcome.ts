import {
  ClientDisconnected,
  disconnectedCode,
  QueryCancelled,
  QueryError,
  QueryInterrupted,
  QueryNotStarted,
  QuerySlotsBusy,
  slotsBusyCode,
} from './query_errors.ts';
import type { QueryOutcome } from './statuses.ts';

/** The outcome of a query whose run threw `error`. Internal errors are reported without details. */
export function outcomeOfError(error: unknown): Exclude<QueryOutcome, { status: 'completed' }> {
  if (error instanceof QueryCancelled) return { status: 'cancelled' };
  if (error instanceof QueryError)
    return { status: 'failed', error_code: error.code, error_message: error.message };
  if (error instanceof ClientDisconnected)
    return { status: 'failed', error_code: disconnectedCode, error_message: error.message };
  if (error instanceof QuerySlotsBusy)
    return { status: 'failed', error_code: slotsBusyCode, error_message: error.message };
  if (error instanceof QueryInterrupted || error instanceof QueryNotStarted)
    return { status: 'failed', error_code: 'query_interrupted', error_message: error.message };
  return { status: 'failed', error_code: 'error', error_message: 'A server error occurred.' };
}
