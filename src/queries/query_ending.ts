import { QueryCancelled, QueryInterrupted, QueryInvalid, QueryNotBegun } from './query_errors.ts';
import type { QueryEnding } from './statuses.ts';

/** How a query ends whose run threw this, without anything that only we should know. */
export function endingOf(error: unknown): Exclude<QueryEnding, { status: 'completed' }> {
  if (error instanceof QueryCancelled) return { status: 'cancelled' };
  if (error instanceof QueryInvalid)
    return { status: 'failed', error_code: error.code, error_message: error.message };
  if (error instanceof QueryInterrupted || error instanceof QueryNotBegun)
    return { status: 'failed', error_code: 'query_interrupted', error_message: error.message };
  return { status: 'failed', error_code: 'error', error_message: 'A server error occurred.' };
}
