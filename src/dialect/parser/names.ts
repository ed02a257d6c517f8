import type { Name } from '../ast.ts';
import { commonNameKeywords, keywordsRequiringAs, reservedWords } from '../keywords.ts';
import type { Cursor } from './cursor.ts';

/** A name where nothing but a name can stand, behind AS or a point: any word. */
export function anyName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'word' && token.kind !== 'quoted_name') throw cursor.unexpected(expected, []);
  return readName(cursor);
}

/** A name that is not a word of the grammar, or stands in quotes. */
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

/** `AS name`, a name alone where none of the grammar's words can be meant, or nothing. */
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

/** The name behind AS, which may be a text too: `AS 'my column'`. */
export function aliasName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'string') return anyName(cursor, expected);
  if (token.text === '') throw cursor.error('A name cannot be empty.', token);
  cursor.advance();
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}
