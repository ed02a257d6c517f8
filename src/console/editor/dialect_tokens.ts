/** What a piece of a query looks like. */
export type TokenLook =
  | 'keyword'
  | 'function'
  | 'name'
  | 'string'
  | 'number'
  | 'comment'
  | 'symbol'
  | 'space';

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
