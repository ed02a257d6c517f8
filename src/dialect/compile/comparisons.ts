import type { ComparisonOperator } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { commonType, isNumber, nameOfType, scalar, type Type } from '../types.ts';
import { coerce, readConstant } from './coerce.ts';
import type { ExpressionUse } from './compiler.ts';
import { toPostgresPattern } from './regular_expressions.ts';

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
  sides: ComparisonOperands,
  use: ExpressionUse,
  statement: Statement,
): Value {
  const boolean = (fragment: Sql, nullable = false): Value =>
    derive(operator, [sides.left, sides.right], scalar('boolean', nullable), fragment);
  if (operator === '=' || operator === '!=') {
    const other = sides.right.constant === null ? sides.left : sides.right;
    if (sides.right.constant === null || sides.left.constant === null)
      return boolean(operator === '=' ? sql`(${other.sql} is null)` : sql`(${other.sql} is not null)`);
  }
  const { left, right, type } = toComparable(sides, statement);
  const nullables = [sides.left, sides.right].filter((side) => side.type.nullable).length;
  const collation =
    type.kind === 'string' && operator !== '=' && operator !== '!=' ? sql` collate "C"` : sql``;
  const sign = rawSql(operator === '!=' ? '<>' : operator);
  const plain = sql`(${left} ${sign} ${right}${collation})`;
  if (nullables === 0) return boolean(plain);
  if (use === 'join' || type.kind === 'datetime') return boolean(plain, true);
  if (operator === '!=') return boolean(sql`(${left} is distinct from ${right})`);
  if (operator === '=' && nullables === 2) return boolean(sql`(${left} is not distinct from ${right})`);
  return use === 'filter' ? boolean(plain, true) : boolean(sql`coalesce(${plain}, false)`);
}

/** Converts both sides to a type that PostgreSQL can compare. @throws DialectError if there is none */
export function toComparable(
  { left, right, node }: ComparisonOperands,
  statement: Statement,
): { readonly left: Sql; readonly right: Sql; readonly type: Type } {
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
      type: scalar('string'),
    };
  const type = commonType(first.type, second.type);
  if (type !== null)
    return { left: coerce(first, type, statement), right: coerce(second, type, statement), type };
  throw statement.error(
    `${nameOfType(left.type)} cannot be compared with ${nameOfType(right.type)}.`,
    node,
    suggestionFor(left, right),
  );
}

function suggestionFor(left: Value, right: Value): string | null {
  const other = left.type.kind === 'string' ? right : right.type.kind === 'string' ? left : undefined;
  if (other === undefined) return null;
  if (typeof (other === left ? right : left).constant === 'string')
    return `The string is not a valid ${nameOfType(other.type)}.`;
  if (other.type.kind === 'boolean') return "Compare it with the string 'true' or 'false'.";
  if (other.type.kind === 'date' || other.type.kind === 'datetime')
    return 'Convert the string with toDateTime(…).';
  return isNumber(other.type) ? 'Convert the string with toFloat(…) or toInt(…).' : null;
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

/** LIKE, ILIKE and regular expressions. Null never matches; negations of null are true. */
export function matchValues(
  operator: MatchOperator,
  { left, right, node }: ComparisonOperands,
  use: ExpressionUse,
  statement: Statement,
): Value {
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
  const wanted =
    isPattern && right.type.kind === 'string'
      ? toPostgresPattern(right, node, statement, 'match')
      : text(right);
  const plain = sql`(${text(left)} ${rawSql(matches[operator])} ${wanted})`;
  const nullable = left.type.nullable || right.type.nullable;
  const negated = operator.startsWith('not') || operator.startsWith('!');
  const of = (fragment: Sql, isNullable = false): Value =>
    derive(operator, [left, right], scalar('boolean', isNullable), fragment);
  if (!nullable) return of(plain);
  if (use === 'join') return of(plain, true);
  if (negated) return of(sql`coalesce(${plain}, true)`);
  if (left.type.nullable && right.type.nullable)
    return of(sql`coalesce(${plain}, ${left.sql} is null and ${right.sql} is null)`);
  return use === 'filter' ? of(plain, true) : of(sql`coalesce(${plain}, false)`);
}
