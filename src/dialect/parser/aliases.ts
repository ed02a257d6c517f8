import type { Alias, Expression, Star } from '../ast.ts';
import { aliasName } from './names.ts';
import type { Cursor } from './cursor.ts';
import { star } from './stars.ts';

const expectedAlias = 'an alias after AS';

/** An expression that may have a name: `x AS y`. */
export function item(cursor: Cursor): Expression {
  const expression = cursor.grammar.expression(cursor);
  return aliasOf(cursor, expression) ?? expression;
}

/** An item that may be a star: of SELECT, of a call, of COLUMNS. */
export function itemOrStar(cursor: Cursor): Expression | Star {
  return cursor.peekSymbol('*') ? star(cursor, cursor.token.start, []) : item(cursor);
}

/** The alias of an expression just read, when AS comes next. */
export function aliasOf(cursor: Cursor, expression: Expression): Alias | undefined {
  if (!cursor.acceptKeywords('AS')) return undefined;
  const name = aliasName(cursor, expectedAlias);
  return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
}
