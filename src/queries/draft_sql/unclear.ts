import { QueryError } from '../query_errors.ts';

/** A prompt that no query can be drafted for; the sentence says why and what would help. */
export const unclear = (sentence: string): QueryError =>
  new QueryError('unclear', sentence, { attr: 'prompt' });
