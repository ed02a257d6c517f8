import { printQuery } from '../../dialect/print/print.ts';
import { composeQuery } from './compose/compose.ts';
import { isRefinement, refinedQuery } from './compose/refine.ts';
import { createNameIndex } from './naming/name_index.ts';
import { nameMentions } from './naming/name_mentions.ts';
import type { Vocabulary } from './naming/vocabulary.ts';
import { wordsOf } from './naming/words.ts';
import { unclear } from './unclear.ts';
import { understand } from './understand.ts';

/** The input of a draft. */
export interface DraftInput {
  readonly prompt: string;
  readonly current_query: string | null;
  readonly vocabulary: Vocabulary;
  /** The current date in the project's zone, as `2026-11-21`. */
  readonly today: string;
}

const maxRows = 10_000;

/**
 * Drafts a dialect query for a prompt by rules and the project's names. A prompt that only narrows, such as `only the
 * last 7 days`, changes the current query.
 * @throws QueryError `unclear`
 */
export function draftByRules({ prompt, current_query, vocabulary, today }: DraftInput): string {
  const draft = understand(nameMentions(wordsOf(prompt), createNameIndex(vocabulary)), today);
  const { limit } = draft;
  if (limit !== null && (limit < 1 || limit > maxRows || !Number.isInteger(limit)))
    throw unclear('The number of rows must be between 1 and 10,000.');
  return printQuery(
    current_query !== null && isRefinement(draft) ? refinedQuery(current_query, draft) : composeQuery(draft),
  );
}
