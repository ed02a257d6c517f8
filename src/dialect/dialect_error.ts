/** A position in a query text, both counted from 1. A column is one character, as in an editor. */
interface LineAndColumn {
  readonly line: number;
  readonly column: number;
}

/** In characters. */
const maxExcerptWidth = 100;

/** A query text with the line positions that errors need. */
export class QueryText {
  readonly text: string;
  #lineStarts: number[] | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** The line and column of an offset in UTF-16 code units. Offsets after the end count as the end. */
  lineAndColumnOf(offset: number): LineAndColumn {
    const starts = this.#starts();
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const before = this.text.slice(starts[low] ?? 0, offset);
    return { line: low + 1, column: codePointsOf(before).length + 1 };
  }

  /** The line at an offset, truncated to a readable width, and a line of carets under `length` code units. */
  excerptAt(offset: number, length: number): string {
    const { line } = this.lineAndColumnOf(offset);
    const start = this.#starts()[line - 1] ?? 0;
    const next = this.#starts()[line];
    const whole = this.text.slice(start, next).replace(/\r?\n$|\r$/, '');
    const before = codePointsOf(whole.slice(0, offset - start));
    const caretCount = Math.max(1, codePointsOf(whole.slice(offset - start, offset - start + length)).length);
    const all = codePointsOf(whole);
    const from = all.length <= maxExcerptWidth ? 0 : Math.max(0, before.length - maxExcerptWidth / 2);
    const excerpt = all.slice(from, from + maxExcerptWidth);
    const head = from > 0 ? '…' : '';
    const tail = from + maxExcerptWidth < all.length ? '…' : '';
    const indent = before.slice(from).map((character) => (character === '\t' ? '\t' : ' '));
    const carets = '^'.repeat(Math.min(caretCount, Math.max(1, excerpt.length - indent.length)));
    return `${head}${excerpt.join('')}${tail}\n${head === '' ? '' : ' '}${indent.join('')}${carets}`;
  }

  #starts(): readonly number[] {
    if (this.#lineStarts !== undefined) return this.#lineStarts;
    const starts = [0];
    for (const match of this.text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length);
    this.#lineStarts = starts;
    return starts;
  }
}

/** Splits into code points, so that carets line up. */
const codePointsOf = (text: string): string[] => Array.from(text);

/** Where a query is wrong and what to write instead. */
interface DialectErrorDetails {
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

/**
 * The known name most similar to `name`, or null if none is close. At most one letter in three may differ, be
 * missing, be extra or be swapped with its neighbor. Case is ignored.
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const lowerCaseName = name.toLowerCase();
  // Bounds the work: very long names are never typos of known ones.
  if (lowerCaseName.length > 64) return null;
  let best: string | null = null;
  const maxDistance = Math.floor(lowerCaseName.length / 3);
  let bestDistance = maxDistance + 1;
  for (const candidate of known) {
    const isLonger = candidate.toLowerCase().startsWith(lowerCaseName);
    // Among equally close names, prefer one that starts with the given text.
    const limit = isLonger ? bestDistance + 1 : bestDistance;
    const distance = editDistance(lowerCaseName, candidate.toLowerCase(), limit);
    if (distance >= limit || distance > maxDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Edit distance between two strings, where a swap of neighbors is one edit. `limit` stands for any larger distance.
 */
function editDistance(first: string, second: string, limit: number): number {
  if (Math.abs(first.length - second.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: second.length + 1 }, (_, index) => index);
  for (let row = 1; row <= first.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= second.length; column += 1) {
      const same = first[row - 1] === second[column - 1];
      const edits = [
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      ];
      if (first[row - 1] === second[column - 2] && first[row - 2] === second[column - 1])
        edits.push((beforeLast[column - 2] ?? Infinity) + 1);
      current.push(Math.min(...edits));
    }
    beforeLast = last;
    last = current;
  }
  return last[second.length] ?? limit;
}
