import { QueryInvalid } from '../query_errors.ts';

/** A prompt that no query can be drafted for; the sentence says why and what would help. */
export const unclear = (sentence: string): QueryInvalid =>
  new QueryInvalid('unclear', sentence, { attr: 'prompt' });
