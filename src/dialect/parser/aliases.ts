import type { Alias, Expression, Star } from '../ast.ts';
import { aliasName } from './names.ts';
import type { Cursor } from './cursor.ts';
import { star } from './stars.ts';

const whatAlias = 'a name behind AS';

/** An expression that may have a name: `x AS y`. */
export function item(cursor: Cursor): Expression {
  const expression = cursor.grammar.expression(cursor);
  return aliasOf(cursor, expression) ?? expression;
}

/** An item that may be a star: of SELECT, of a call, of COLUMNS. */
export function itemOrStar(cursor: Cursor): Expression | Star {
  return cursor.atSymbol('*') ? star(cursor, cursor.token.start, []) : item(cursor);
}

/** The alias of an expression just read, when AS comes next. */
export function aliasOf(cursor: Cursor, expression: Expression): Alias | undefined {
  if (!cursor.takeWords('AS')) return undefined;
  const name = aliasName(cursor, whatAlias);
  return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
}
