import type { QueryText } from './query_text.ts';

/** What is known of a fault beside its sentence. */
export interface DialectErrorDetails {
  /** Offset of the first code unit at fault. */
  readonly start: number;
  /** Offset behind the last one; at the end of the text both are the same. */
  readonly end: number;
  /** What may have been meant, as a sentence. */
  readonly suggestion?: string | null;
}

/**
 * A query that the dialect does not accept. The message is a whole answer for the user: the sentence, the suggestion,
 * and the line with carets below what is at fault.
 */
export class DialectError extends Error {
  override readonly name = 'DialectError';
  /** The sentence alone. */
  readonly summary: string;
  readonly suggestion: string | null;
  /** From one. */
  readonly line: number;
  /** From one, in characters. */
  readonly column: number;
  /** Offset in the text, in UTF-16 code units. */
  readonly offset: number;
  /** Code units at fault; 0 at the end of the text. */
  readonly length: number;
  /** The line at fault and a line of carets. */
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
