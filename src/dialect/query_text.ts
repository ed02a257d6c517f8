/** A position in a query text, both counted from 1. A column is one character, as in an editor. */
export interface LineAndColumn {
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
