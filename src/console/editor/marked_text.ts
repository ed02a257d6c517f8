/** What a piece of a query looks like. */
type TokenLook = 'keyword' | 'function' | 'name' | 'string' | 'number' | 'comment' | 'symbol' | 'space';

/** A piece of a query. Offsets are UTF-16 code units. */
export interface DialectToken {
  readonly start: number;
  readonly end: number;
  readonly look: TokenLook;
}

const pattern =
  /(?<space>\s+)|(?<comment>--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<string>'(?:\\[\s\S]|''|[^'\\])*(?:'|$))|(?<quoted>`(?:\\[\s\S]|[^`\\])*(?:`|$)|"(?:\\[\s\S]|[^"\\])*(?:"|$))|(?<number>\d[\w.]*)|(?<word>[\p{L}_$][\p{L}\p{N}_$]*)|(?<symbol>[\s\S])/gu;

/**
 * Splits a text of the dialect for highlighting. It never fails: an unclosed string reaches to the end. The tokens cover the
 * text without gaps.
 * @param keywords in upper case
 */
export function dialectTokens(text: string, keywords: ReadonlySet<string>): readonly DialectToken[] {
  const tokens: DialectToken[] = [];
  let isAfterDot = false;
  for (const { 0: matched, index: start, groups = {} } of text.matchAll(pattern)) {
    const end = start + matched.length;
    const look = lookOf(groups, matched, { text, end, isAfterDot, keywords });
    tokens.push({ start, end, look });
    if (look !== 'space') isAfterDot = matched === '.';
  }
  return tokens;
}

interface Surroundings {
  readonly text: string;
  readonly end: number;
  readonly isAfterDot: boolean;
  readonly keywords: ReadonlySet<string>;
}

function lookOf(
  groups: Readonly<Record<string, string | undefined>>,
  matched: string,
  { text, end, isAfterDot, keywords }: Surroundings,
): TokenLook {
  if (groups.space !== undefined) return 'space';
  if (groups.comment !== undefined) return 'comment';
  if (groups.string !== undefined) return 'string';
  if (groups.quoted !== undefined) return 'name';
  if (groups.number !== undefined) return 'number';
  if (groups.word === undefined) return 'symbol';
  if (isAfterDot) return 'name';
  if (/^\s*\(/.test(text.slice(end)) && !keywords.has(matched.toUpperCase())) return 'function';
  return keywords.has(matched.toUpperCase()) ? 'keyword' : 'name';
}

/** The part of a text that is wrong. */
export interface ErrorRange {
  readonly offset: number;
  /** 0 at the end of the text. */
  readonly length: number;
}

/** A piece of a text as it is drawn. */
interface MarkedPiece {
  readonly text: string;
  readonly look: TokenLook;
  readonly isWrong: boolean;
}

/** Cuts tokens at the bounds of an error. An error without length marks the space after the text. */
export function markedPieces(
  text: string,
  tokens: readonly DialectToken[],
  error: ErrorRange | null,
): readonly MarkedPiece[] {
  const start = error === null ? text.length + 1 : Math.min(error.offset, text.length);
  const end = error === null ? start : start + Math.max(1, error.length);
  const pieces = tokens.flatMap((token) => {
    const cuts = [token.start, ...[start, end].filter((at) => at > token.start && at < token.end), token.end];
    return cuts.slice(1).map((to, index) => {
      const from = cuts[index] ?? 0;
      return { text: text.slice(from, to), look: token.look, isWrong: from >= start && from < end };
    });
  });
  return start === text.length ? [...pieces, { text: ' ', look: 'space', isWrong: true }] : pieces;
}

/**
 * The position in the detail of an API error about a query: its line and column, and the carets below the line.
 * Null for other errors.
 */
export function errorRangeOf(detail: string, text: string): ErrorRange | null {
  const [, line, column] = /\(line (\d+), column (\d+)\)\n/.exec(detail) ?? [];
  if (line === undefined || column === undefined) return null;
  const lines = text.split(/(?<=\r\n|\n|\r(?!\n))/);
  const before = lines.slice(0, Number(line) - 1).join('');
  const inLine = Array.from(lines[Number(line) - 1] ?? '');
  // Columns and carets count characters, offsets code units.
  const offset = before.length + inLine.slice(0, Number(column) - 1).join('').length;
  const carets = /(\^+)\s*$/.exec(detail)?.[1]?.length ?? 1;
  const wrong = inLine
    .slice(Number(column) - 1, Number(column) - 1 + carets)
    .join('')
    .replace(/[\r\n]+$/, '');
  return { offset, length: wrong.length };
}

/** The words of the detail of a dialect error, without the excerpt of the query. */
export const summaryOfError = (detail: string): string => detail.split('\n')[0] ?? detail;
