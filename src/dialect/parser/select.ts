import type { Alias, ArrayJoin, ColumnCte, Cte, Expression, QueryCte, Select } from '../ast.ts';
import { aliasOf, item } from './aliases.ts';
import type { Cursor } from './cursor.ts';
import { from } from './from.ts';
import { optionalGroupBy } from './group_by.ts';
import { limitClauses } from './limit_clauses.ts';
import { anyName, optionalAlias, plainName } from './names.ts';
import { optionalOrderBy } from './order_items.ts';
import { rejectUnsupportedClause, rejectTop } from './unsupported_clauses.ts';
import { star } from './stars.ts';
import { optionalWindows } from './windows.ts';

/** One SELECT with its clauses in order. */
export function select(cursor: Cursor): Select {
  const { start } = cursor.token;
  const ctes = optionalCtes(cursor);
  if (cursor.peekKeywords('SELECT')) cursor.countSelect();
  cursor.expectKeywords('SELECT');
  rejectTop(cursor);
  const { distinct, distinctOn } = optionalDistinct(cursor);
  const columns = selectItems(cursor);
  const read = cursor.acceptKeywords('FROM') ? from(cursor) : null;
  const arrayJoin = optionalArrayJoin(cursor);
  const prewhere = optionalClause(cursor, 'PREWHERE');
  const where = optionalClause(cursor, 'WHERE');
  const groupBy = optionalGroupBy(cursor);
  const having = optionalClause(cursor, 'HAVING');
  const qualify = optionalClause(cursor, 'QUALIFY');
  const windows = optionalWindows(cursor);
  const orderBy = optionalOrderBy(cursor);
  const { limitBy, limit } = limitClauses(cursor);
  rejectUnsupportedClause(cursor, 'end');
  return cursor.node<Select>(start, {
    kind: 'select',
    ctes,
    distinct,
    distinctOn,
    columns,
    from: read,
    arrayJoin,
    prewhere,
    where,
    groupBy,
    having,
    qualify,
    windows,
    orderBy,
    limitBy,
    limit,
  });
}

function optionalCtes(cursor: Cursor): readonly Cte[] {
  if (!cursor.acceptKeywords('WITH')) return [];
  if (cursor.peekKeywords('RECURSIVE')) throw cursor.error('WITH RECURSIVE is not supported.');
  return cursor.list(
    () => cte(cursor),
    () => cursor.peekKeywords('SELECT'),
  );
}

/** `name AS (SELECT …)`, or `expression AS name`. */
function cte(cursor: Cursor): Cte {
  const { start } = cursor.token;
  const { kind } = cursor.token;
  const isNamed = (kind === 'word' || kind === 'quoted_name') && peekAsQuery(cursor);
  if (isNamed) {
    const name = plainName(cursor, 'the name of a CTE');
    cursor.expectKeywords('AS');
    rejectUnsupportedClause(cursor, 'cte');
    const query = cursor.parenthesized(() => cursor.grammar.query(cursor));
    return cursor.node<QueryCte>(start, { kind: 'query_cte', name, query });
  }
  const expression = cursor.grammar.expression(cursor);
  cursor.expectKeywords('AS');
  if (cursor.peekSymbol('('))
    throw cursor.error('A CTE cannot list its columns; name them in its query.', {
      start: expression.start,
      end: expression.end,
    });
  return cursor.node<ColumnCte>(start, {
    kind: 'column_cte',
    expression,
    name: anyName(cursor, 'an alias for this expression'),
  });
}

function peekAsQuery(cursor: Cursor): boolean {
  const token = cursor.peek(1);
  if (token.kind !== 'word' || token.upper !== 'AS') return false;
  const next = cursor.peek(2);
  return cursor.peekSymbol('(', 2) || (next.kind === 'word' && ['MATERIALIZED', 'NOT'].includes(next.upper));
}

function optionalDistinct(cursor: Cursor): Pick<Select, 'distinct' | 'distinctOn'> {
  if (!cursor.acceptKeywords('DISTINCT')) return { distinct: false, distinctOn: [] };
  if (!cursor.acceptKeywords('ON')) return { distinct: true, distinctOn: [] };
  return { distinct: true, distinctOn: cursor.parenthesized(() => cursor.list(() => item(cursor))) };
}

function selectItems(cursor: Cursor): readonly Expression[] {
  if (cursor.peekKeywords('FROM'))
    throw cursor.error('SELECT has no columns.', cursor.token, 'Write `*` for all columns.');
  return cursor.list(
    () => selectItem(cursor),
    () => cursor.peekKeywords('FROM') || cursor.peekKind('end'),
  );
}

/** A column of SELECT; AS is optional before its alias. */
export function selectItem(cursor: Cursor): Expression {
  if (cursor.peekSymbol('*')) return star(cursor, cursor.token.start, []);
  const expression = cursor.grammar.expression(cursor);
  if (expression.kind === 'star') return expression;
  const name = optionalAlias(cursor, 'an alias for this column');
  if (name === null) return expression;
  return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
}

function optionalArrayJoin(cursor: Cursor): ArrayJoin | null {
  const { start } = cursor.token;
  const left = cursor.acceptKeywords('LEFT', 'ARRAY', 'JOIN');
  if (!left && !cursor.acceptKeywords('INNER', 'ARRAY', 'JOIN') && !cursor.acceptKeywords('ARRAY', 'JOIN'))
    return null;
  const items = cursor.list(() => item(cursor));
  return cursor.node<ArrayJoin>(start, { kind: 'array_join', left, items });
}

function optionalClause(cursor: Cursor, word: string): Expression | null {
  if (!cursor.acceptKeywords(word)) return null;
  const expression = cursor.grammar.expression(cursor);
  return aliasOf(cursor, expression) ?? expression;
}
