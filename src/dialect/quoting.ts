import { DialectError } from './dialect_error.ts';
import type { QueryText } from './query_text.ts';

/** Escape sequences. A backslash before any other character is literal, as regular expressions need it. */
const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  a: '\u0007',
  '0': '\0',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '`': '`',
};

const quotedTokenNames: Readonly<Record<string, string>> = {
  "'": 'string',
  '"': 'double-quoted name',
  '`': 'backtick-quoted name',
};

/**
 * Reads a quoted token from the opening quote at `start`. A doubled or backslash-escaped quote is literal. An
 * unescaped `stop` character (the brace of a template string) also ends it. `end` is the offset after the character
 * that ended it.
 * @throws DialectError if the quote is not closed
 */
export function readQuoted(
  queryText: QueryText,
  start: number,
  quote: string,
  stop?: string,
): { readonly value: string; readonly end: number } {
  const { text } = queryText;
  const parts: string[] = [];
  let from = start + 1;
  let at = from;
  while (at < text.length) {
    const character = text[at];
    if (character === quote || character === stop) {
      parts.push(text.slice(from, at));
      if (character === stop || text[at + 1] !== quote) return { value: parts.join(''), end: at + 1 };
      parts.push(quote);
      at += 2;
      from = at;
    } else if (character === '\\' && at + 1 < text.length) {
      const next = text[at + 1] ?? '';
      const unescaped = next === stop ? next : escapes[next];
      parts.push(text.slice(from, at), unescaped ?? `\\${next}`);
      at += 2;
      from = at;
    } else at += 1;
  }
  throw new DialectError(queryText, `This ${quotedTokenNames[quote] ?? 'string'} is not closed.`, {
    start,
    end: firstLineEnd(text, start),
    suggestion: `Close it with \`${quote === '`' ? '` `' : quote}\`.`,
  });
}

function firstLineEnd(text: string, start: number): number {
  const lineBreak = text.slice(start).search(/[\r\n]/);
  return lineBreak === -1 ? text.length : start + lineBreak;
}

/** Quotes a string so that {@link readQuoted} reads it back. */
export function quoteString(text: string, quote: string, stop?: string): string {
  return `${quote}${escapeQuoted(text, quote, stop)}${quote}`;
}

/** Escapes a string for use between quotes. */
export function escapeQuoted(text: string, quote: string, stop?: string): string {
  let escaped = '';
  for (const character of text) {
    if (character === '\\' || character === quote || character === stop) escaped += `\\${character}`;
    else if (character === '\n') escaped += '\\n';
    else if (character === '\r') escaped += '\\r';
    else if (character === '\t') escaped += '\\t';
    else if (character === '\0') escaped += '\\0';
    else escaped += character;
  }
  return escaped;
}
