import type {
  Alias,
  ArrayJoin,
  ColumnCte,
  Cte,
  Expression,
  GroupBy,
  GroupingSet,
  Limit,
  LimitBy,
  OrderItem,
  Query,
  QueryCte,
  Select,
  SetOperation,
  SetOperator,
} from '../ast.ts';
import { nonSelectStatements } from '../query_text.ts';
import { Cursor, defaultLimits, type Grammar, type ParseLimits } from './cursor.ts';
import { expression, optionalOrderBy, optionalWindows, orderItem } from './expressions.ts';
import { from } from './from.ts';
import { aliasOf, anyName, item, itemOrStar, optionalAlias, plainName, star } from './literals.ts';

interface UnsupportedClause {
  readonly words: readonly string[];
  readonly summary: string;
  readonly suggestion?: string;
}

/** Clauses of other databases that the dialect does not support, by position in a SELECT. */
const unsupportedClauses: Readonly<Record<'cte' | 'end', readonly UnsupportedClause[]>> = {
  cte: [
    { words: ['MATERIALIZED'], summary: 'MATERIALIZED is not supported.', suggestion: 'Remove it.' },
    {
      words: ['NOT', 'MATERIALIZED'],
      summary: 'NOT MATERIALIZED is not supported.',
      suggestion: 'Remove it.',
    },
  ],
  end: [
    { words: ['SETTINGS'], summary: 'SETTINGS is not supported.', suggestion: 'Remove it.' },
    {
      words: ['FORMAT'],
      summary: 'FORMAT is not supported.',
      suggestion: 'Results are JSON; use a batch export for other formats.',
    },
    {
      words: ['INTO'],
      summary: 'INTO is not supported.',
      suggestion: 'Use a batch export to write rows elsewhere.',
    },
    { words: ['FOR'], summary: 'FOR UPDATE and other locking clauses are not supported.' },
    { words: ['FETCH'], summary: 'FETCH is not supported.', suggestion: 'Use LIMIT.' },
    { words: ['WITH', 'TOTALS'], summary: 'WITH TOTALS must directly follow the GROUP BY list.' },
  ],
};

/** @throws DialectError if an unsupported clause comes next */
function rejectUnsupportedClause(cursor: Cursor, position: 'cte' | 'end'): void {
  const unsupported = unsupportedClauses[position].find(({ words }) => cursor.peekKeywords(...words));
  if (unsupported !== undefined)
    throw cursor.error(unsupported.summary, cursor.token, unsupported.suggestion ?? null);
}

/** @throws DialectError for `SELECT TOP 10 x`. Without a number `top` is a column. */
function rejectTop(cursor: Cursor): void {
  if (cursor.peekKeywords('TOP') && cursor.peek(1).kind === 'number')
    throw cursor.error('TOP is not supported.', cursor.token, 'Use LIMIT at the end of the query.');
}

/** The order of the clauses of a SELECT. */
const clauseOrder = [
  'FROM',
  'PREWHERE',
  'WHERE',
  'GROUP BY',
  'HAVING',
  'QUALIFY',
  'WINDOW',
  'ORDER BY',
  'LIMIT',
  'OFFSET',
];

/** @throws DialectError if the next token is a clause that belongs earlier */
function rejectMisplacedClause(cursor: Cursor): void {
  const { token } = cursor;
  if (token.kind !== 'word') return;
  const clause = clauseOrder.find((name) => name.split(' ')[0] === token.upper);
  if (clause === undefined) return;
  throw cursor.error(
    `${clause} is misplaced or repeated.`,
    token,
    `Clauses come in this order: ${clauseOrder.join(', ')}.`,
  );
}

/** The clauses that end a query: LIMIT … BY, LIMIT and OFFSET. */
interface LimitClauses {
  readonly limitBy: LimitBy | null;
  readonly limit: Limit | null;
}

interface Bounds {
  readonly count: Expression;
  readonly percent: boolean;
  readonly offset: Expression | null;
  readonly withTies: boolean;
}

/** Reads `LIMIT n BY …` and `LIMIT n`, each at most once and in this order. */
function limitClauses(cursor: Cursor): LimitClauses {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('LIMIT')) return { limitBy: null, limit: offsetAlone(cursor) };
  const bounds = limitBounds(cursor);
  if (!cursor.acceptKeywords('BY')) return { limitBy: null, limit: limitOf(cursor, start, bounds) };
  if (bounds.withTies) throw cursor.error('WITH TIES cannot be used with LIMIT … BY.');
  if (bounds.percent) throw cursor.error('PERCENT cannot be used with LIMIT … BY.');
  const { count, offset } = bounds;
  const by = cursor.list(() => itemOrStar(cursor));
  const limitBy = cursor.node<LimitBy>(start, { kind: 'limit_by', count, offset, by });
  return { limitBy, limit: optionalLimit(cursor) };
}

/** `LIMIT n [OFFSET m]` or `OFFSET m`, or null. */
function optionalLimit(cursor: Cursor): Limit | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('LIMIT')) return offsetAlone(cursor);
  const bounds = limitBounds(cursor);
  if (cursor.peekKeywords('BY')) throw cursor.error('A SELECT may have one LIMIT … BY, before LIMIT.');
  return limitOf(cursor, start, bounds);
}

function offsetAlone(cursor: Cursor): Limit | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('OFFSET')) return null;
  const offset = cursor.grammar.expression(cursor);
  if (cursor.peekKeywords('LIMIT')) throw cursor.error('LIMIT must come before OFFSET.');
  return cursor.node<Limit>(start, { kind: 'limit', count: null, percent: false, offset, withTies: false });
}

/** The operands of LIMIT. `LIMIT m, n` gives the offset first. */
function limitBounds(cursor: Cursor): Bounds {
  const first = cursor.grammar.expression(cursor);
  if (cursor.acceptSymbol(','))
    return {
      count: cursor.grammar.expression(cursor),
      percent: cursor.acceptKeywords('PERCENT'),
      offset: first,
      withTies: cursor.acceptKeywords('WITH', 'TIES'),
    };
  const percent = cursor.acceptKeywords('PERCENT');
  if (percent && cursor.peekSymbol(','))
    throw cursor.error('In LIMIT m, n, PERCENT comes after both numbers.');
  const tiesBefore = cursor.acceptKeywords('WITH', 'TIES');
  const offset = cursor.acceptKeywords('OFFSET') ? cursor.grammar.expression(cursor) : null;
  return { count: first, percent, offset, withTies: tiesBefore || cursor.acceptKeywords('WITH', 'TIES') };
}

const limitOf = (cursor: Cursor, start: number, bounds: Bounds): Limit =>
  cursor.node<Limit>(start, { kind: 'limit', ...fractionAsPercent(bounds) });

/** `LIMIT 0.1` is LIMIT 10 PERCENT. */
function fractionAsPercent(bounds: Bounds): Bounds {
  const { count, percent } = bounds;
  if (percent || count.kind !== 'number') return bounds;
  const share = Number(count.text);
  if (!(share > 0 && share < 1)) return bounds;
  // Shift the exponent in the text, because 0.07 * 100 is more than 7.
  const [digits, exponent = '0'] = String(share).split('e');
  const text = String(Number(`${digits}e${Number(exponent) + 2}`));
  return { ...bounds, count: { ...count, text }, percent: true };
}

/** GROUP BY with its modes, or null if it is absent. */
function optionalGroupBy(cursor: Cursor): GroupBy | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('GROUP')) return null;
  cursor.expectKeywords('BY');
  const { mode, items } = grouping(cursor);
  const withTotals = cursor.acceptKeywords('WITH', 'TOTALS');
  return cursor.node<GroupBy>(start, { kind: 'group_by', mode, items, withTotals });
}

function grouping(cursor: Cursor): Pick<GroupBy, 'mode' | 'items'> {
  const list = (): readonly Expression[] => cursor.list(() => item(cursor));
  if (cursor.acceptKeywords('GROUPING', 'SETS'))
    return {
      mode: 'grouping_sets',
      items: cursor.parenthesized(() => cursor.list(() => groupingSet(cursor))),
    };
  for (const [word, mode] of modes) {
    if (!cursor.peekKeywords(word) || !cursor.peekSymbol('(', 1)) continue;
    cursor.advance();
    return { mode, items: cursor.parenthesized(list) };
  }
  if (cursor.acceptKeywords('ALL')) return { mode: 'all', items: [] };
  const items = list();
  const behind = modes.find(([word]) => cursor.acceptKeywords('WITH', word));
  return { mode: behind?.[1] ?? 'plain', items };
}

const modes = [
  ['ROLLUP', 'rollup'],
  ['CUBE', 'cube'],
] as const;

function groupingSet(cursor: Cursor): GroupingSet {
  const { start } = cursor.token;
  if (!cursor.acceptSymbol('('))
    return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items: [item(cursor)] });
  const items = cursor.peekSymbol(')') ? [] : cursor.list(() => item(cursor));
  cursor.expectSymbol(')');
  return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items });
}

/** One SELECT with its clauses in order. */
function select(cursor: Cursor): Select {
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
  if (cursor.peekKeywords('RECURSIVE'))
    throw cursor.error(
      'WITH RECURSIVE is not supported.',
      cursor.token,
      'Write numbers(n) for a series, and one JOIN for each level of a tree.',
    );
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
function selectItem(cursor: Cursor): Expression {
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

/** An operand of a set operation. In parentheses it is a unit. */
interface Operand {
  readonly query: Query;
  readonly parenthesized: boolean;
}

/** A SELECT, or several combined by UNION, EXCEPT and INTERSECT, which binds tightest. */
function query(cursor: Cursor): Query {
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

const grammar: Grammar = { expression, query };

/**
 * Parses one SELECT or set operation with an optional trailing `;`. It does not check whether tables, fields and
 * functions exist; the resolver does.
 * @throws DialectError with the position and, if possible, a suggestion
 */
export function parseQuery(text: string, limits: ParseLimits = defaultLimits): Query {
  return parseWhole(text, limits, (cursor) => {
    rejectOtherStatements(cursor);
    const read = query(cursor);
    if (cursor.acceptSymbol(';') && !cursor.peekKind('end'))
      throw cursor.error(
        'Only one query can be run at a time.',
        cursor.token,
        'Remove everything after the `;`.',
      );
    return read;
  });
}

/** Parses an expression, such as an entry of `where` or a breakdown. */
export function parseExpression(text: string, limits: ParseLimits = defaultLimits): Expression {
  return parseWhole(text, limits, expression);
}

/** Parses an entry of `select`: an expression with an optional alias, or a star. */
export function parseSelectItem(text: string, limits: ParseLimits = defaultLimits): Expression {
  return parseWhole(text, limits, selectItem);
}

/** Parses an entry of `orderBy`. */
export function parseOrderItem(text: string, limits: ParseLimits = defaultLimits): OrderItem {
  return parseWhole(text, limits, orderItem);
}

function parseWhole<Result>(text: string, limits: ParseLimits, rule: (cursor: Cursor) => Result): Result {
  const cursor = new Cursor(text, grammar, limits);
  const result = rule(cursor);
  if (!cursor.peekKind('end')) throw cursor.unexpected('an operator, a clause or the end of the query');
  return result;
}

function rejectOtherStatements(cursor: Cursor): void {
  const { token } = cursor;
  if (token.kind === 'end') throw cursor.error('The query is empty.', token, 'Write a SELECT.');
  if (token.kind === 'word' && nonSelectStatements.has(token.upper))
    throw cursor.error(`Only SELECT is supported; found ${token.upper}.`, token);
}
