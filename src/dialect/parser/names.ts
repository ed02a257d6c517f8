import type { Name } from '../ast.ts';
import { likelyNames, neverBareAlias, reservedWords } from '../keywords.ts';
import type { Cursor } from './cursor.ts';

/** A name where nothing but a name can stand, behind AS or a point: any word. */
export function anyName(cursor: Cursor, what: string): Name {
  const { token } = cursor;
  if (token.kind !== 'word' && token.kind !== 'quoted_name') throw cursor.unexpected(what, []);
  return takeName(cursor);
}

/** A name that is not a word of the grammar, or stands in quotes. */
export function plainName(cursor: Cursor, what: string): Name {
  const { token } = cursor;
  if (token.kind === 'word' && reservedWords.has(token.upper))
    throw cursor.error(
      `Expected ${what}, found the keyword \`${token.text}\`.`,
      token,
      likelyNames.has(token.upper)
        ? `A name that is also a keyword stands in backticks: \`${token.text}\`.`
        : null,
    );
  return anyName(cursor, what);
}

/** Reads the next token as a name. */
export function takeName(cursor: Cursor): Name {
  const token = cursor.advance();
  if (token.kind === 'quoted_name' && token.text === '') throw cursor.error('A name cannot be empty.', token);
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}

/** `AS name`, a name alone where none of the grammar's words can be meant, or nothing. */
export function optionalAlias(cursor: Cursor, what: string): Name | null {
  if (cursor.takeWords('AS')) return aliasName(cursor, what);
  const { token } = cursor;
  const isBare = token.kind === 'quoted_name' || (token.kind === 'word' && !neverBareAlias.has(token.upper));
  if (!isBare) return null;
  const name = takeName(cursor);
  cursor.tookBareAlias();
  return name;
}

/** The name behind AS, which may be a text too: `AS 'my column'`. */
export function aliasName(cursor: Cursor, what: string): Name {
  const { token } = cursor;
  if (token.kind !== 'string') return anyName(cursor, what);
  if (token.text === '') throw cursor.error('A name cannot be empty.', token);
  cursor.advance();
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}
