import { QueryError } from '../query_errors.ts';

/** The error for a prompt that cannot be drafted. The message says why and what would help. */
export const unclear = (message: string): QueryError =>
  new QueryError('unclear', message, { attr: 'prompt' });
