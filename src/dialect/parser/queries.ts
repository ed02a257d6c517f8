import type { Query, SetOperation, SetOperator } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { optionalLimit } from './limits_clause.ts';
import { optionalOrderBy } from './order_items.ts';
import { refuseMisplacedClause } from './refusals.ts';
import { select } from './select.ts';

/** A query of a set operation; in brackets it is a unit that no other operator goes on with. */
interface Operand {
  readonly query: Query;
  readonly bracketed: boolean;
}

/** A SELECT, or several joined by UNION, EXCEPT and INTERSECT, of which the last binds tightest. */
export function query(cursor: Cursor): Query {
  return cursor.nested(() => {
    const { start } = cursor.token;
    const { query: whole, bracketed } = chain(cursor, start, takeUnion, (inner) =>
      chain(inner, inner.token.start, takeIntersect, operand),
    );
    if (!bracketed || !atTail(cursor)) return whole;
    if (whole.kind !== 'set_operation' || whole.start !== start)
      throw cursor.error('ORDER BY and LIMIT of a query in brackets stand inside them.');
    return withTail(cursor, whole);
  });
}

const atTail = (cursor: Cursor): boolean =>
  cursor.atWords('ORDER') || cursor.atWords('LIMIT') || cursor.atWords('OFFSET');

/** ORDER BY and LIMIT of a whole set operation, whose last query stands in brackets. */
function withTail(cursor: Cursor, { kind, operator, operands, start }: SetOperation): SetOperation {
  const orderBy = optionalOrderBy(cursor);
  const limit = optionalLimit(cursor);
  return cursor.node<SetOperation>(start, { kind, operator, operands, orderBy, limit });
}

/** Operands joined from left to right; neighbours with the same operator are one node. `bracketed` is of the last. */
function chain(
  cursor: Cursor,
  start: number,
  take: (cursor: Cursor) => SetOperator | undefined,
  next: (cursor: Cursor) => Operand,
): Operand {
  let last = next(cursor);
  let left = last.query;
  let operator = take(cursor);
  if (operator === undefined) return last;
  while (operator !== undefined) {
    const joined: SetOperator = operator;
    const operands: Query[] = [left];
    do {
      last = next(cursor);
      operands.push(last.query);
      operator = take(cursor);
    } while (operator === joined);
    left = cursor.node<SetOperation>(start, {
      kind: 'set_operation',
      operator: joined,
      operands,
      orderBy: [],
      limit: null,
    });
  }
  return { query: left, bracketed: last.bracketed };
}

function operand(cursor: Cursor): Operand {
  if (!cursor.atSymbol('(')) return { query: selectOf(cursor), bracketed: false };
  return { query: cursor.bracketed(() => cursor.grammar.query(cursor)), bracketed: true };
}

function selectOf(cursor: Cursor): Query {
  if (!cursor.atWords('SELECT') && !cursor.atWords('WITH'))
    throw cursor.unexpected('SELECT', ['SELECT', 'WITH']);
  const read = select(cursor);
  refuseMisplacedClause(cursor);
  return read;
}

function takeUnion(cursor: Cursor): SetOperator | undefined {
  if (cursor.takeWords('UNION')) return isAll(cursor, false) ? 'union all' : 'union distinct';
  if (cursor.takeWords('EXCEPT')) return isAll(cursor, true) ? 'except all' : 'except distinct';
  return undefined;
}

function takeIntersect(cursor: Cursor): SetOperator | undefined {
  if (!cursor.takeWords('INTERSECT')) return undefined;
  return isAll(cursor, true) ? 'intersect all' : 'intersect distinct';
}

/** Without a word, EXCEPT and INTERSECT count equal rows, as they do for the engine that analysts know. */
function isAll(cursor: Cursor, otherwise: boolean): boolean {
  const all = cursor.takeWords('ALL') || (!cursor.takeWords('DISTINCT') && otherwise);
  if (cursor.atWords('BY', 'NAME'))
    throw cursor.error('BY NAME is not supported: queries are joined by the order of their columns.');
  return all;
}
