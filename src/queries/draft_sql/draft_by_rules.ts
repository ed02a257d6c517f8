import { printQuery } from '../../dialect/print/print.ts';
import { composeQuery } from './compose/compose.ts';
import { isRefinement, refinedQuery } from './compose/refine.ts';
import { createNameIndex } from './naming/name_index.ts';
import { nameMentions } from './naming/name_mentions.ts';
import type { Vocabulary } from './naming/vocabulary.ts';
import { wordsOf } from './naming/words.ts';
import { unclear } from './unclear.ts';
import { understand } from './understand.ts';

/** What a query is drafted from. */
export interface DraftInput {
  readonly prompt: string;
  readonly current_query: string | null;
  readonly vocabulary: Vocabulary;
  /** The project's day, as `2026-11-21`. */
  readonly today: string;
}

const maxRows = 10_000;

/**
 * The query of the dialect that a prompt asks for, by rules and a project's own names. A prompt that only narrows
 * something narrows the current query.
 * @throws QueryError `unclear`
 */
export function draftByRules({ prompt, current_query, vocabulary, today }: DraftInput): string {
  const draft = understand(nameMentions(wordsOf(prompt), createNameIndex(vocabulary)), today);
  const { limit } = draft;
  if (limit !== null && (limit < 1 || limit > maxRows || !Number.isInteger(limit)))
    throw unclear('A query lists between 1 and 10,000 rows.');
  return printQuery(
    current_query !== null && isRefinement(draft) ? refinedQuery(current_query, draft) : composeQuery(draft),
  );
}
