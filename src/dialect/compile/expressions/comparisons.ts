import type { ComparisonOperator, Expression, Node, Query } from '../../ast.ts';
import { toPostgresPattern } from '../../regular_expressions/translate.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, identityOf, syntaxIdentity, type Value } from '../../resolve/value.ts';
import { commaList, generatedName, joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import {
  commonType,
  isNumber,
  isUnmatched,
  nameOfType,
  scalarType,
  tupleOf,
  type Type,
  withNull,
} from '../../types.ts';
import { columnAlias, type CompiledQuery, type Compiler, type ExpressionUse } from '../compiler.ts';
import {
  coerce,
  defaultOf,
  definitionHint,
  fromJson,
  readConstant,
  spacedSql,
  spacedValue,
} from './coerce.ts';
import { firstReading } from './readings.ts';

export type OrderOperator = '=' | '!=' | '<' | '<=' | '>' | '>=';
export type MatchOperator = Extract<
  ComparisonOperator,
  'like' | 'not like' | 'ilike' | 'not ilike' | '=~' | '!~' | '=~*' | '!~*'
>;

/** The operands of a comparison and its node. */
export interface ComparisonOperands {
  readonly left: Value;
  readonly right: Value;
  readonly node: Node;
}

/**
 * Comparison operators. Results are never null: null equals only null and is neither less nor greater than anything.
 * Filters, joins and datetimes compare plainly where the result is the same.
 */
export function compareValues(
  operator: OrderOperator,
  given: ComparisonOperands,
  use: ExpressionUse,
  statement: Statement,
): Value {
  const plainSides = withoutBlanks(given);
  const sides = operator === '=' && use !== 'value' ? storedSides(plainSides) : plainSides;
  const boolean = (fragment: Sql, nullable = false): Value =>
    derive(operator, [given.left, given.right], scalarType('boolean', nullable), fragment);
  if (operator === '=' || operator === '!=') {
    const other = sides.right.constant === null ? sides.left : sides.right;
    if (sides.right.constant === null || sides.left.constant === null)
      return boolean(sql`(${spacedSql(other)} ${operator === '=' ? sql`is null` : sql`is not null`})`);
  }
  const { left, right, type } = toComparable(sides, statement);
  const unmatched = comparedWithDefault(sides);
  if (unmatched !== null && operator === '=')
    return boolean(sql`(${left} = ${right} or ${unmatched} is null)`);
  const nullables = [sides.left, sides.right].filter((side) => side.type.nullable).length;
  const collation =
    type.kind === 'string' && operator !== '=' && operator !== '!=' ? sql` collate "C"` : sql``;
  const sign = rawSql(operator === '!=' ? '<>' : operator);
  const plain = sql`(${left} ${sign} ${right}${collation})`;
  if (nullables === 0) return boolean(plain);
  if (use === 'join' || type.kind === 'datetime') return boolean(plain, true);
  if (operator === '!=' && unmatched !== null)
    return use === 'filter' ? boolean(plain, true) : boolean(sql`coalesce(${plain}, false)`);
  if (operator === '!=') return boolean(sql`(${left} is distinct from ${right})`);
  if (operator === '=' && nullables === 2) return boolean(sql`(${left} is not distinct from ${right})`);
  return use === 'filter' ? boolean(plain, true) : boolean(sql`coalesce(${plain}, false)`);
}

/** Whether the text differs from all arrays and objects in its first character, so that their blanks do not matter. */
const isOfScalar = ({ constant }: Value): boolean => typeof constant === 'string' && !/^[[{]/.test(constant);

function withoutBlanks({ left, right, node }: ComparisonOperands): ComparisonOperands {
  if (isOfScalar(right)) return { left: spacedValue(left), right, node };
  return isOfScalar(left) ? { left, right: spacedValue(right), node } : { left, right, node };
}

/** What a column stores whose '' may be a null; a null is no more equal to another text than '' is. */
const storedValue = (value: Value): Value =>
  value.stored === undefined ? value : { ...value, sql: value.stored(), type: scalarType('string', true) };

const isText = ({ constant }: Value): boolean => typeof constant === 'string' && constant !== '';

function storedSides({ left, right, node }: ComparisonOperands): ComparisonOperands {
  if (isText(right)) return { left: storedValue(left), right, node };
  return isText(left) ? { left, right: storedValue(right), node } : { left, right, node };
}

/** A column of an outer join that is compared with the default of its type, which ClickHouse has in unmatched rows. */
function comparedWithDefault({ left, right }: ComparisonOperands): Sql | null {
  const isDefault = ({ constant }: Value): boolean =>
    constant === '' || constant === 0n || constant === 0 || constant === false;
  if (isUnmatched(left.type) && isDefault(right)) return left.sql;
  return isUnmatched(right.type) && isDefault(left) ? right.sql : null;
}

/** Converts both sides to a type that PostgreSQL can compare. @throws DialectError if there is none */
export function toComparable({ left, right, node }: ComparisonOperands, statement: Statement): ComparedSides {
  const compared = firstReading([left, right], statement, ([first = left, second = right]) =>
    comparedAs(first, second, statement),
  );
  if (compared !== null) return compared;
  throw statement.error(
    `${nameOfType(left.type)} cannot be compared with ${nameOfType(right.type)}.`,
    node,
    suggestionFor(left, right),
  );
}

function comparedAs(left: Value, right: Value, statement: Statement): ComparedSides | null {
  const readLeft = left.type.kind === right.type.kind ? undefined : readConstant(left, right.type, statement);
  const readRight =
    left.type.kind === right.type.kind ? undefined : readConstant(right, left.type, statement);
  const first = readLeft ?? left;
  const second = readRight ?? right;
  const textual = new Set(['string', 'uuid']);
  if (first.type.kind !== second.type.kind && textual.has(first.type.kind) && textual.has(second.type.kind))
    return {
      left: sql`(${first.sql})::text`,
      right: sql`(${second.sql})::text`,
      type: scalarType('string'),
    };
  const type = commonType(first.type, second.type);
  return type && { left: coerce(first, type, statement), right: coerce(second, type, statement), type };
}

function suggestionFor(left: Value, right: Value): string | null {
  const other = left.type.kind === 'string' ? right : right.type.kind === 'string' ? left : undefined;
  if (other === undefined) return null;
  if (typeof (other === left ? right : left).constant === 'string')
    return `The string is not a valid ${nameOfType(other.type)}.`;
  if (other.type.kind === 'boolean') return "Compare it with the string 'true' or 'false'.";
  if (other.type.kind === 'date' || other.type.kind === 'datetime')
    return 'Convert the string with toDateTime(…).';
  return isNumber(other.type)
    ? `Convert the string with toFloat(…) or toInt(…).${definitionHint(other === left ? right : left)}`
    : null;
}

const matches: Readonly<Record<MatchOperator, string>> = {
  like: 'like',
  'not like': 'not like',
  ilike: 'ilike',
  'not ilike': 'not ilike',
  '=~': '~',
  '!~': '!~',
  '=~*': '~*',
  '!~*': '!~*',
};

/** Whether a LIKE pattern matches arrays and objects with blanks and without: no part of it can be beside a blank. */
const matchesAlike = ({ constant }: Value): boolean =>
  typeof constant === 'string' && (/^[^[{%_\\]/.test(constant) || !/[ ,:_\\]/.test(constant));

/** LIKE, ILIKE and regular expressions. Null matches null alone. */
export function matchValues(
  operator: MatchOperator,
  { node, ...sides }: ComparisonOperands,
  use: ExpressionUse,
  statement: Statement,
): Value {
  const left = sides.left.text ?? sides.left;
  const right = sides.right.text ?? sides.right;
  const text = ({ type, sql: fragment }: Value): Sql => {
    if (type.kind === 'string' || type.kind === 'null') return fragment;
    if (type.kind === 'uuid') return sql`(${fragment})::text`;
    throw statement.error(
      `${operator.toUpperCase()} requires strings, found ${nameOfType(type)}.`,
      node,
      'Convert it with toString(…).',
    );
  };
  const isPattern = operator.includes('~');
  const matched = !isPattern && matchesAlike(right) ? spacedValue(left) : left;
  const wanted =
    isPattern && right.type.kind === 'string'
      ? toPostgresPattern(right, node, statement, 'match')
      : text(right);
  const plain = sql`(${text(matched)} ${rawSql(matches[operator])} ${wanted})`;
  const nullable = left.type.nullable || right.type.nullable;
  const negated = operator.startsWith('not') || operator.startsWith('!');
  const of = (fragment: Sql, isNullable = false): Value =>
    derive(operator, [left, right], scalarType('boolean', isNullable), fragment);
  if (!nullable) return of(plain);
  if (use === 'join') return of(plain, true);
  const bothNull = sql`${spacedSql(left)} is null and ${spacedSql(right)} is null`;
  if (left.type.nullable && right.type.nullable)
    return of(sql`coalesce(${plain}, ${negated ? sql`not (${bothNull})` : bothNull})`);
  if (negated) return of(sql`coalesce(${plain}, true)`);
  return use === 'filter' ? of(plain, true) : of(sql`coalesce(${plain}, false)`);
}

/** A subquery of an expression, with the alias of its rows. */
interface Subquery extends CompiledQuery {
  readonly alias: Sql;
  /** Unique in the statement. */
  readonly number: number;
}

/**
 * Compiles a subquery of an expression. It cannot see the outer rows, so equal subqueries share one, and match GROUP BY
 * keys. In a lambda they must also read the same parameters. Without that, a subquery would be compiled once for each time
 * its SELECT is, and nested ones exponentially often.
 */
export function subqueryOf(compiler: Compiler, query: Query, scope: Scope): Subquery {
  const { statement } = scope;
  const known = statement.subqueries.get(scope.ctes) ?? new Map<string, Subquery>();
  statement.subqueries.set(scope.ctes, known);
  const key = `${parametersKey(scope)}${syntaxIdentity(query)}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const number = statement.nextNumber();
  const made = { ...compiler.query(query, scope), alias: statement.uniqueName('subquery'), number };
  known.set(key, made);
  return made;
}

/** What a value computed from a subquery calls it. */
export const operationOf = ({ number }: Subquery): string => `subquery ${number}`;

/** A column of a subquery's rows. */
export const subqueryColumn = (query: Subquery, index: number, type: Type): Value =>
  derive(
    `${operationOf(query)} column ${index + 1}`,
    [],
    type,
    sql`${query.alias}.${columnAlias(index + 1)}`,
  );

/** Equal for scopes whose lambda parameters mean the same; empty outside of lambdas. */
function parametersKey({ lambdaParameters, lambdaDepth }: Scope): string {
  if (lambdaParameters.size === 0) return '';
  const parameters = [...lambdaParameters].map(([name, value]) => [name, identityOf(value), value.type]);
  return `${JSON.stringify([lambdaDepth, parameters])}\n`;
}

/** An IN with its operands. */
interface InExpression {
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
  const items = right.kind === 'tuple' || right.kind === 'array' ? right.items : itemsOfTuple(right);
  const rightValue = items === null ? compiler.value(right, scope) : null;
  if (rightValue !== null && rightValue.items === undefined && rightValue.type.kind === 'array')
    return inArray(left, rightValue, inExpression, scope);
  const values = items?.map((item) => compiler.value(item, scope)) ??
    rightValue?.items ?? [rightValue ?? left];
  return inValues(left, isOneRow(left, values) ? [rowOf(values)] : values, inExpression, scope, use);
}

/** The items of `tuple(1, 2)`; null for other expressions. */
const itemsOfTuple = (node: Expression): readonly Expression[] | null =>
  node.kind === 'call' && node.name.text === 'tuple' ? node.arguments : null;

/** `(a, b) IN (1, 2)` compares with one pair. */
const isOneRow = (left: Value, values: readonly Value[]): boolean =>
  left.type.kind === 'tuple' && values.every((value) => value.type.kind !== 'tuple');

const rowOf = (items: readonly Value[]): Value =>
  derive('tuple', items, tupleOf(items.map(({ type }) => type)), sql``, { items });

function inValues(
  given: Value,
  values: readonly Value[],
  { right, negated }: InExpression,
  scope: Scope,
  use: ExpressionUse,
): Value {
  const { statement } = scope;
  const plain = values.every((value) => value.constant === null || isOfScalar(value))
    ? spacedValue(given)
    : given;
  const left = !negated && use !== 'value' && values.every(isText) ? storedValue(plain) : plain;
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
  if (containsNull) found.push(sql`${spacedSql(left)} is null`);
  else if (left.type.nullable)
    for (const { sql: candidate, type } of known)
      if (type.nullable) found.push(sql`(${left.sql} is null and ${candidate} is null)`);
  const any = found.length === 0 ? sql`false` : sql`(${joinSql(found, ' or ')})`;
  const operands = [given, ...values];
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
    derive(`${negated ? 'not ' : ''}${operation}`, from, scalarType('boolean', isNullable), fragment);
  if (!nullable) return test(negated ? sql`(not ${found})` : found);
  if (negated) return test(sql`(${found} is not true)`);
  if (use === 'value') return test(sql`(${found} is true)`);
  return test(found, true);
}

function inArray(left: Value, array: Value, { right, negated }: InExpression, scope: Scope): Value {
  const item: Type = array.type.kind === 'array' ? array.type.item : scalarType('null', true);
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
    const type = query.columns[index]?.type ?? scalarType('null', true);
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
