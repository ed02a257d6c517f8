import type { Expression } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, generatedName, joinSql, sql, type Sql } from '../sql.ts';
import { nameOfType, scalar, tupleOf, type Type, withNull } from '../types.ts';
import { toComparable } from './comparisons.ts';
import type { Compiler, ExpressionUse } from './compiler.ts';
import { defaultOf, fromJson } from './json_values.ts';
import { operationOf, subqueryColumn, subqueryOf } from './subqueries.ts';

/** An IN with its operands. */
export interface InExpression {
  readonly left: Expression;
  readonly right: Expression;
  readonly negated: boolean;
}

/** `x IN (1, 2)`, `x IN (SELECT …)` and their negations. Null is in a list that contains null. */
export function inValue(
  compiler: Compiler,
  inExpression: InExpression,
  scope: Scope,
  use: ExpressionUse,
): Value {
  const { right } = inExpression;
  if (right.kind === 'subquery') return inQuery(compiler, inExpression, scope, use);
  const left = compiler.value(inExpression.left, scope);
  const items = right.kind === 'tuple' || right.kind === 'array' ? right.items : null;
  const rightValue = items === null ? compiler.value(right, scope) : null;
  if (rightValue !== null && rightValue.items === undefined && rightValue.type.kind === 'array')
    return inArray(left, rightValue, inExpression, scope);
  const values = items?.map((item) => compiler.value(item, scope)) ??
    rightValue?.items ?? [rightValue ?? left];
  return inValues(left, isOneRow(left, values) ? [rowOf(values)] : values, inExpression, scope, use);
}

/** `(a, b) IN (1, 2)` compares with one pair. */
const isOneRow = (left: Value, values: readonly Value[]): boolean =>
  left.type.kind === 'tuple' && values.every((value) => value.type.kind !== 'tuple');

const rowOf = (items: readonly Value[]): Value =>
  derive('tuple', items, tupleOf(items.map(({ type }) => type)), sql``, { items });

function inValues(
  left: Value,
  values: readonly Value[],
  { right, negated }: InExpression,
  scope: Scope,
  use: ExpressionUse,
): Value {
  const { statement } = scope;
  const known = values.filter(({ constant }) => constant !== null);
  const containsNull = known.length < values.length;
  const equalities = known.map((value) => {
    const rows = itemPairs(left, value);
    if (rows === null) {
      const sides = toComparable({ left, right: value, node: right }, statement);
      return { left: sides.left, right: sides.right, compared: [sides.type] };
    }
    const compared = rows.map(([first, second]) =>
      toComparable({ left: first, right: second, node: right }, statement),
    );
    return {
      left: sql`(${commaList(compared.map((side) => side.left))})`,
      right: sql`(${commaList(compared.map((side) => side.right))})`,
      compared: compared.map(({ type }) => type),
    };
  });
  // The left side has one SQL for each type that it is compared as.
  const byType = new Map<string, { left: Sql; rights: Sql[] }>();
  for (const { left: comparable, right: candidate, compared } of equalities) {
    const types = compared.map((type) => nameOfType(type)).join(', ');
    const group = byType.get(types) ?? { left: comparable, rights: [] };
    group.rights.push(candidate);
    byType.set(types, group);
  }
  const found = [...byType.values()].map((group) => sql`${group.left} in (${commaList(group.rights)})`);
  if (containsNull) found.push(sql`${left.sql} is null`);
  else if (left.type.nullable)
    for (const { sql: candidate, type } of known)
      if (type.nullable) found.push(sql`(${left.sql} is null and ${candidate} is null)`);
  const any = found.length === 0 ? sql`false` : sql`(${joinSql(found, ' or ')})`;
  const operands = [left, ...values];
  return withNullSemantics(any, 'in', operands, anyNullable(left, values), negated, use);
}

const anyNullable = (left: Value, values: readonly Value[]): boolean =>
  [left, ...values].some(
    (value) => value.type.nullable || (value.items?.some((item) => item.type.nullable) ?? false),
  );

/** Pairs the items of two tuples. */
function itemPairs(left: Value, right: Value): readonly (readonly [Value, Value])[] | null {
  if (left.items === undefined || right.items === undefined || left.type.kind !== 'tuple') return null;
  if (left.items.length !== right.items.length) return null;
  const found: [Value, Value][] = [];
  for (const [index, item] of left.items.entries()) {
    const other = right.items[index];
    if (other !== undefined) found.push([item, other]);
  }
  return found;
}

function withNullSemantics(
  found: Sql,
  operation: string,
  from: readonly Value[],
  nullable: boolean,
  negated: boolean,
  use: ExpressionUse,
): Value {
  const test = (fragment: Sql, isNullable = false): Value =>
    derive(`${negated ? 'not ' : ''}${operation}`, from, scalar('boolean', isNullable), fragment);
  if (!nullable) return test(negated ? sql`(not ${found})` : found);
  if (negated) return test(sql`(${found} is not true)`);
  if (use === 'value') return test(sql`(${found} is true)`);
  return test(found, true);
}

function inArray(left: Value, array: Value, { right, negated }: InExpression, scope: Scope): Value {
  const item: Type = array.type.kind === 'array' ? array.type.item : scalar('null', true);
  const name = generatedName('item');
  const element = derive(
    'item',
    [array],
    item,
    fromJson(sql`${name}.value`, sql`(${name}.value #>> '{}')`, item),
  );
  const sides = toComparable({ left, right: element, node: right }, scope.statement);
  const found = sql`exists (select from jsonb_array_elements(${array.sql}) as ${name}
    where ${sides.left} is not distinct from ${sides.right})`;
  return withNullSemantics(found, 'in array', [left, array], false, negated, 'value');
}

function inQuery(compiler: Compiler, inExpression: InExpression, scope: Scope, use: ExpressionUse): Value {
  const { left, right, negated } = inExpression;
  if (right.kind !== 'subquery') throw new Error('Not a query.');
  const query = subqueryOf(compiler, right.query, scope);
  const items = left.kind === 'tuple' ? left.items : [left];
  const values = items.map((item) => compiler.value(item, scope));
  if (values.length !== query.columns.length)
    throw scope.statement.error(
      `IN compares ${columnCount(values.length)} with a subquery of ${columnCount(query.columns.length)}.`,
      right,
    );
  const { alias } = query;
  const sides = values.map((value, index) => {
    const type = query.columns[index]?.type ?? scalar('null', true);
    const column = subqueryColumn(query, index, type);
    const compared = toComparable({ left: value, right: column, node: right }, scope.statement);
    return { ...compared, isLeftNullable: value.type.nullable, isRightNullable: type.nullable };
  });
  const rows = sides.flatMap((side) =>
    side.isLeftNullable && side.isRightNullable ? withNulls(side) : [side],
  );
  const isNullable = sides.some((side) => side.isLeftNullable !== side.isRightNullable);
  const missing = sides.filter((side) => side.isRightNullable && !side.isLeftNullable);
  const where =
    negated && missing.length > 0
      ? sql` where ${joinSql(
          missing.map((side) => sql`${side.right} is not null`),
          ' and ',
        )}`
      : sql``;
  const found = sql`((${commaList(rows.map((side) => side.left))}) in (select ${commaList(
    rows.map((side) => side.right),
  )} from (${query.sql}) as ${alias}${where}))`;
  const value = withNullSemantics(found, `in ${operationOf(query)}`, values, isNullable, negated, use);
  return { ...value, query: query.typed };
}

interface ComparedSides {
  readonly left: Sql;
  readonly right: Sql;
  readonly type: Type;
}

/**
 * Null is in a subquery that returns null. Two non-null columns replace a nullable one, so that PostgreSQL can still
 * use a hash join.
 */
function withNulls({ left, right, type }: ComparedSides): readonly Pick<ComparedSides, 'left' | 'right'>[] {
  const none = defaultOf(withNull(type, false));
  return [
    { left: sql`coalesce(${left}, ${none})`, right: sql`coalesce(${right}, ${none})` },
    { left: sql`(${left} is null)`, right: sql`(${right} is null)` },
  ];
}

const columnCount = (count: number): string => `${count} ${count === 1 ? 'column' : 'columns'}`;
