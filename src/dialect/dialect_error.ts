import type { QueryText } from './query_text.ts';

/** Where a query is wrong and what to write instead. */
export interface DialectErrorDetails {
  /** Offset of the first wrong code unit. */
  readonly start: number;
  /** Offset after the last one. Equal to `start` at the end of the text. */
  readonly end: number;
  /** What to write instead, as a sentence. */
  readonly suggestion?: string | null;
}

/**
 * A query that the dialect rejects. The message contains all a user needs: the summary, the suggestion, and the line
 * with carets under the error.
 */
export class DialectError extends Error {
  override readonly name = 'DialectError';
  /** The message without suggestion and excerpt. */
  readonly summary: string;
  readonly suggestion: string | null;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  /** Offset in the query text, in UTF-16 code units. */
  readonly offset: number;
  /** Number of wrong code units; 0 at the end of the text. */
  readonly length: number;
  /** The wrong line and a line of carets. */
  readonly excerpt: string;

  constructor(queryText: QueryText, summary: string, details: DialectErrorDetails) {
    const { line, column } = queryText.lineAndColumnOf(details.start);
    const length = details.end - details.start;
    const excerpt = queryText.excerptAt(details.start, length);
    const suggestion = details.suggestion ?? null;
    const words = suggestion === null ? summary : `${summary} ${suggestion}`;
    super(`${words} (line ${line}, column ${column})\n${excerpt}`);
    this.summary = summary;
    this.suggestion = suggestion;
    this.line = line;
    this.column = column;
    this.offset = details.start;
    this.length = length;
    this.excerpt = excerpt;
  }
}
