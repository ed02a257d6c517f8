import type { Name } from '../ast.ts';
import { commonNameKeywords, keywordsRequiringAs, reservedWords } from '../keywords.ts';
import type { Cursor } from './cursor.ts';

/** A name where only a name is possible, after AS or a dot. Every word is one. */
export function anyName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'word' && token.kind !== 'quoted_name') throw cursor.unexpected(expected, []);
  return readName(cursor);
}

/** A name that is not a reserved word, or is quoted. */
export function plainName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind === 'word' && reservedWords.has(token.upper))
    throw cursor.error(
      `Expected ${expected}, found the keyword \`${token.text}\`.`,
      token,
      commonNameKeywords.has(token.upper)
        ? `Write a name that is also a keyword in backticks: \`${token.text}\`.`
        : null,
    );
  return anyName(cursor, expected);
}

/** Reads the next token as a name. */
export function readName(cursor: Cursor): Name {
  const token = cursor.advance();
  if (token.kind === 'quoted_name' && token.text === '') throw cursor.error('A name cannot be empty.', token);
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}

/** `AS name`, a bare name that cannot be a keyword, or null. */
export function optionalAlias(cursor: Cursor, expected: string): Name | null {
  if (cursor.acceptKeywords('AS')) return aliasName(cursor, expected);
  const { token } = cursor;
  const isBare =
    token.kind === 'quoted_name' || (token.kind === 'word' && !keywordsRequiringAs.has(token.upper));
  if (!isBare) return null;
  const name = readName(cursor);
  cursor.recordBareAlias();
  return name;
}

/** The name after AS, which may be a string: `AS 'my column'`. */
export function aliasName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'string') return anyName(cursor, expected);
  if (token.text === '') throw cursor.error('A name cannot be empty.', token);
  cursor.advance();
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}
