import type { Cte, Expression, OrderItem, Query, SetOperation } from '../../ast.ts';
import { identifiedRelation, queryRelation } from '../../resolve/relation.ts';
import type { CteScope, NamedQuery, Scope } from '../../resolve/scope.ts';
import { derive, type TypedQuery } from '../../resolve/value.ts';
import { commaList, joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import { commonTypeOf, nameOfType, zoneOf } from '../../types.ts';
import { columnAlias, type CompiledColumn, type CompiledQuery, type Compiler } from '../compiler.ts';
import { coerce } from '../expressions/coerce.ts';
import { limitedRows, sortDirection, sortKey } from './order_and_limit.ts';

/** The scope of a WITH clause. Each CTE sees the ones before it and those of outer queries. */
export function cteScope(ctes: readonly Cte[], outer: CteScope | null): CteScope | null {
  let scope = outer;
  for (const cte of ctes) {
    const queries = new Map<string, NamedQuery>();
    const expressions = new Map<string, Expression>();
    if (cte.kind === 'query_cte') queries.set(cte.name.text, { query: cte.query, scope });
    else expressions.set(cte.name.text, cte.expression);
    scope = { queries, expressions, outer: scope };
  }
  return scope;
}

/** The WITH clause of the first operand, which applies to all operands of a set operation. */
function leadingCtes(query: Query): readonly Cte[] {
  if (query.kind === 'select') return query.ctes;
  const [first] = query.operands;
  return first === undefined ? [] : leadingCtes(first);
}

/**
 * Compiles UNION, INTERSECT and EXCEPT. Columns are matched by position and converted to common types; names come
 * from the first query.
 */
export function compileSetOperation(
  compiler: Compiler,
  operation: SetOperation,
  outer: Scope,
): CompiledQuery {
  const { statement } = outer;
  const scope: Scope = { ...outer, ctes: cteScope(leadingCtes(operation), outer.ctes) };
  const operands = operation.operands.map((operand) => compiler.query(operand, scope));
  const [first] = operands;
  if (first === undefined) throw statement.error('A set operation requires at least two queries.', operation);
  const columns = first.columns.map((column, index): CompiledColumn => {
    const types = operands.flatMap((operand) => operand.columns[index]?.type ?? []);
    const type = commonTypeOf(types);
    const lastOperand = operation.operands.at(-1) ?? operation;
    if (type === null)
      throw statement.error(
        `Column ${index + 1} has no common type: ${types.map((one) => nameOfType(one)).join(', ')}.`,
        lastOperand,
      );
    const zones = new Set(types.flatMap((one) => (one.kind === 'datetime' ? [zoneOf(one)] : [])));
    if (zones.size > 1)
      throw statement.error(
        `The times in column ${index + 1} have different time zones.`,
        lastOperand,
        'Use toTimeZone(…) in each query.',
      );
    return { name: column.name, type };
  });
  operands.forEach((operand, index) => {
    if (operand.columns.length !== columns.length)
      throw statement.error(
        `The queries of ${operation.operator.toUpperCase()} have ${columns.length} and ${operand.columns.length} columns.`,
        operation.operands[index] ?? operation,
      );
  });
  const fragments = operands.map((operand) => sql`(${withColumnTypes(operand, columns, scope)})`);
  const joined = joinSql(fragments, ` ${operation.operator.replace(' distinct', '')} `);
  const typed: TypedQuery = {
    operation: operation.operator,
    sources: operands.map((operand) => operand.typed),
    clauses: [],
  };
  if (operation.orderBy.length === 0 && operation.limit === null)
    return { sql: joined, columns, tableCount: 1, typed };
  const alias = statement.uniqueName('joined');
  const selected = commaList(columns.map((_, index) => sql`${alias}.${columnAlias(index + 1)}`));
  const sorted = orderSql(compiler, operation.orderBy, alias, columns, scope);
  const rows = { columns: selected, rows: joined, alias, sorted };
  return { sql: limitedRows(compiler, operation.limit, rows, scope), columns, tableCount: 1, typed };
}

function withColumnTypes(operand: CompiledQuery, columns: readonly CompiledColumn[], scope: Scope): Sql {
  const same = operand.columns.every(({ type }, index) => type.kind === columns[index]?.type.kind);
  if (same) return operand.sql;
  const alias = scope.statement.uniqueName('part');
  const selected = columns.map(({ type }, index) => {
    const own = operand.columns[index]?.type ?? type;
    const value = derive(`operand column ${index + 1}`, [], own, sql`${alias}.${columnAlias(index + 1)}`);
    return sql`${coerce(value, type, scope.statement)} as ${columnAlias(index + 1)}`;
  });
  return sql`select ${commaList(selected)} from (${operand.sql}) as ${alias}`;
}

function orderSql(
  compiler: Compiler,
  items: readonly OrderItem[],
  alias: Sql,
  columns: readonly CompiledColumn[],
  scope: Scope,
): Sql {
  if (items.length === 0) return sql``;
  const { statement } = scope;
  const relation = identifiedRelation(queryRelation(null, sql``, alias, columns), statement.nextNumber());
  const inside: Scope = {
    ...scope,
    relations: [relation],
    aliases: new Map(),
    grouping: null,
    context: 'JOIN',
  };
  const fragments = items.map((item) => {
    if (item.fill !== null) throw scope.statement.error('WITH FILL is not supported.', item.fill);
    const { expression } = item;
    const isOrdinal = expression.kind === 'number' && /^\d+$/.test(expression.text);
    if (isOrdinal && Number(expression.text) > columns.length)
      throw scope.statement.error(`SELECT has no column ${expression.text}.`, expression);
    if (isOrdinal) return sql`${rawSql(String(Number(expression.text)))}${sortDirection(item)}`;
    const value = compiler.value(expression, inside);
    return sql`${sortKey(value.sql, value.type)}${sortDirection(item)}`;
  });
  return sql` order by ${commaList(fragments)}`;
}
