import type { Query, SetOperation, SetOperator } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { optionalLimit } from './limit_clauses.ts';
import { optionalOrderBy } from './order_items.ts';
import { rejectMisplacedClause } from './unsupported_clauses.ts';
import { select } from './select.ts';

/** An operand of a set operation. In parentheses it is a unit. */
interface Operand {
  readonly query: Query;
  readonly parenthesized: boolean;
}

/** A SELECT, or several combined by UNION, EXCEPT and INTERSECT, which binds tightest. */
export function query(cursor: Cursor): Query {
  return cursor.nested(() => {
    const { start } = cursor.token;
    const { query: whole, parenthesized } = chain(cursor, start, acceptUnion, (inner) =>
      chain(inner, inner.token.start, acceptIntersect, operand),
    );
    if (!parenthesized || !peekTail(cursor)) return whole;
    if (whole.kind !== 'set_operation' || whole.start !== start)
      throw cursor.error('Write ORDER BY and LIMIT inside the parentheses.');
    return withTail(cursor, whole);
  });
}

const peekTail = (cursor: Cursor): boolean =>
  cursor.peekKeywords('ORDER') || cursor.peekKeywords('LIMIT') || cursor.peekKeywords('OFFSET');

/** ORDER BY and LIMIT of a set operation whose last operand is parenthesized. */
function withTail(cursor: Cursor, { kind, operator, operands, start }: SetOperation): SetOperation {
  const orderBy = optionalOrderBy(cursor);
  const limit = optionalLimit(cursor);
  return cursor.node<SetOperation>(start, { kind, operator, operands, orderBy, limit });
}

/**
 * Operands combined left to right; adjacent equal operators share a node. `parenthesized` describes the last
 * operand.
 */
function chain(
  cursor: Cursor,
  start: number,
  accept: (cursor: Cursor) => SetOperator | undefined,
  next: (cursor: Cursor) => Operand,
): Operand {
  let last = next(cursor);
  let left = last.query;
  let operator = accept(cursor);
  if (operator === undefined) return last;
  while (operator !== undefined) {
    const joined: SetOperator = operator;
    const operands: Query[] = [left];
    do {
      last = next(cursor);
      operands.push(last.query);
      operator = accept(cursor);
    } while (operator === joined);
    left = cursor.node<SetOperation>(start, {
      kind: 'set_operation',
      operator: joined,
      operands,
      orderBy: [],
      limit: null,
    });
  }
  return { query: left, parenthesized: last.parenthesized };
}

function operand(cursor: Cursor): Operand {
  if (!cursor.peekSymbol('(')) return { query: selectOf(cursor), parenthesized: false };
  return { query: cursor.parenthesized(() => cursor.grammar.query(cursor)), parenthesized: true };
}

function selectOf(cursor: Cursor): Query {
  if (!cursor.peekKeywords('SELECT') && !cursor.peekKeywords('WITH'))
    throw cursor.unexpected('SELECT', ['SELECT', 'WITH']);
  const read = select(cursor);
  rejectMisplacedClause(cursor);
  return read;
}

function acceptUnion(cursor: Cursor): SetOperator | undefined {
  if (cursor.acceptKeywords('UNION')) return isAll(cursor, false) ? 'union all' : 'union distinct';
  if (cursor.acceptKeywords('EXCEPT')) return isAll(cursor, true) ? 'except all' : 'except distinct';
  return undefined;
}

function acceptIntersect(cursor: Cursor): SetOperator | undefined {
  if (!cursor.acceptKeywords('INTERSECT')) return undefined;
  return isAll(cursor, true) ? 'intersect all' : 'intersect distinct';
}

/** Without ALL or DISTINCT, EXCEPT and INTERSECT keep duplicates, as in ClickHouse. */
function isAll(cursor: Cursor, otherwise: boolean): boolean {
  const all = cursor.acceptKeywords('ALL') || (!cursor.acceptKeywords('DISTINCT') && otherwise);
  if (cursor.peekKeywords('BY', 'NAME'))
    throw cursor.error('BY NAME is not supported: columns are matched by position.');
  return all;
}
