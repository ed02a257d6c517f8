import type { Alias, Expression, Star } from '../ast.ts';
import { aliasName } from './names.ts';
import type { Cursor } from './cursor.ts';
import { star } from './stars.ts';

const expectedAlias = 'an alias after AS';

/** An expression with an optional alias: `x AS y`. */
export function item(cursor: Cursor): Expression {
  const expression = cursor.grammar.expression(cursor);
  return aliasOf(cursor, expression) ?? expression;
}

/** An item of SELECT, a call or COLUMNS, which may be a star. */
export function itemOrStar(cursor: Cursor): Expression | Star {
  return cursor.peekSymbol('*') ? star(cursor, cursor.token.start, []) : item(cursor);
}

/** The alias after an expression, if AS comes next. */
export function aliasOf(cursor: Cursor, expression: Expression): Alias | undefined {
  if (!cursor.acceptKeywords('AS')) return undefined;
  const name = aliasName(cursor, expectedAlias);
  return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
}
