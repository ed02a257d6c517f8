import type { From, Join, Table, TableFunction } from '../../ast.ts';
import {
  identifiedRelation,
  optionalColumn,
  queryRelation,
  type Relation,
  sortedRelation,
} from '../../resolve/relation.ts';
import type { CteScope, NamedQuery, Scope } from '../../resolve/scope.ts';
import type { CommonTable } from '../../resolve/statement.ts';
import { tableRelation, unsupportedSampleError } from '../../resolve/tables/tables.ts';
import type { TypedQuery, Value } from '../../resolve/value.ts';
import { joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import { scalarType } from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { toCondition } from '../expressions/coerce.ts';
import { compareValues } from '../expressions/comparisons.ts';
import { type CompiledFrom, mapColumns, parenthesized, usingColumn, usingOperands } from './compiled_from.ts';
import { compileSingleMatchJoin } from './single_match_joins.ts';

/**
 * Maximum number of tables in one FROM. PostgreSQL plans 20 in half a second, 30 in two and 80 in nine, and seldom
 * checks the statement timeout while planning.
 */
const maxJoinedTables = 20;

/** Compiles a join. @throws DialectError */
function compileJoin(
  compiler: Compiler,
  join: Join,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): CompiledFrom {
  const { statement } = scope;
  rejectDuplicateName(left, right, join, scope);
  const tableCount = left.tableCount + right.tableCount;
  if (tableCount > maxJoinedTables)
    throw statement.error(
      `A FROM clause can join at most ${maxJoinedTables} tables.`,
      join.right,
      'Aggregate or limit some of them in a subquery.',
    );
  if (join.strictness !== null && join.strictness !== 'all')
    return compileSingleMatchJoin(compiler, join, join.strictness, left, right, scope);
  const { type, constraint } = join;
  const leftNames = type === 'right' || type === 'full' ? mapColumns(left, optionalColumn) : left;
  const rightNames = type === 'left' || type === 'full' ? mapColumns(right, optionalColumn) : right;
  const relations = [...leftNames.relations, ...rightNames.relations];
  const usingColumns = new Map([...rightNames.usingColumns, ...leftNames.usingColumns]);
  const words = rawSql(`${type} join`);
  const joined = (on: Sql): Pick<CompiledFrom, 'tableCount' | 'isJoin' | 'sources' | 'sql'> => ({
    tableCount,
    sources: [...left.sources, ...right.sources],
    isJoin: true,
    sql: () => sql`${left.sql()} ${words} ${parenthesized(right)}${on}`,
  });
  if (constraint === null) return { relations, usingColumns, ...joined(sql``) };
  if (constraint.kind === 'on') {
    const inside: Scope = {
      ...scope,
      relations: [...left.relations, ...right.relations],
      context: 'JOIN',
      aliases: new Map(),
    };
    const value = compiler.value(constraint.condition, inside, 'join');
    const on = toCondition(value, constraint.condition, statement);
    return { relations, usingColumns, ...joined(sql` on ${on}`) };
  }
  const conditions = constraint.columns.map((name) => {
    const sides = usingOperands(left, right, name, statement);
    usingColumns.set(name.text, usingColumn(type, sides, statement));
    return compareValues('=', sides, 'join', statement).sql;
  });
  return { relations, usingColumns, ...joined(sql` on ${joinSql(conditions, ' and ')}`) };
}

function rejectDuplicateName(
  left: CompiledFrom,
  right: CompiledFrom,
  join: Join,
  { statement }: Scope,
): void {
  for (const { name } of right.relations)
    if (name !== null && left.relations.some((relation) => relation.name === name))
      throw statement.error(`Already have joined a table called "${name}". Can't redefine.`, join.right);
}

/** @throws DialectError */
export function compileFrom(compiler: Compiler, from: From, scope: Scope): CompiledFrom {
  if (from.kind === 'join') {
    const [left, right] = [compileFrom(compiler, from.left, scope), compileFrom(compiler, from.right, scope)];
    return compileJoin(compiler, from, left, right, scope);
  }
  const { relation: found, tableCount: tables, source } = compileRelation(compiler, from, scope);
  const relation = identifiedRelation(found, scope.statement.nextNumber());
  return {
    relations: [relation],
    usingColumns: new Map(),
    sources: [source],
    tableCount: tables,
    isJoin: false,
    sql: () => relation.from(),
  };
}

const tableNamed = (name: string): TypedQuery => ({
  operation: `table ${name}`,
  sources: [],
  clauses: [],
});

interface CompiledTable {
  readonly source: TypedQuery;
  readonly relation: Relation;
  readonly tableCount: number;
}

function compileRelation(compiler: Compiler, from: Exclude<From, Join>, scope: Scope): CompiledTable {
  if (from.kind === 'table') return compileTable(compiler, from, scope);
  if (from.kind === 'table_function')
    return { relation: numbersRelation(compiler, from, scope), tableCount: 1, source: tableNamed('numbers') };
  const query = compiler.query(from.query, scope);
  const name = from.alias?.text ?? null;
  const alias = scope.statement.uniqueName(name ?? 'query');
  const relation =
    from.query.orderBy.length > 0
      ? sortedRelation(name, sql`(${query.sql})`, alias, query.columns)
      : queryRelation(name, sql`(${query.sql}) as ${alias}`, alias, query.columns);
  return { relation, tableCount: query.tableCount, source: query.typed };
}

function compileTable(compiler: Compiler, table: Table, scope: Scope): CompiledTable {
  const { statement } = scope;
  const [first, ...rest] = table.path;
  const named = first === undefined || rest.length > 0 ? undefined : findCte(first.text, scope.ctes);
  const path = table.path.map(({ text }) => text).join('.');
  if (named === undefined)
    return { relation: tableRelation(statement, table), tableCount: 1, source: tableNamed(path) };
  if (table.sample !== null) throw unsupportedSampleError(statement, table.sample);
  const common = commonTable(compiler, named, first?.text ?? '', scope);
  const name = table.alias?.text ?? first?.text ?? null;
  const alias = statement.uniqueName(name ?? 'query');
  const relation =
    named.query.orderBy.length > 0
      ? sortedRelation(name, common.name, alias, common.columns)
      : queryRelation(name, sql`${common.name} as ${alias}`, alias, common.columns);
  return { relation, tableCount: common.tableCount, source: common.typed };
}

function findCte(name: string, ctes: CteScope | null): NamedQuery | undefined {
  for (let scope = ctes; scope !== null; scope = scope.outer) {
    const found = scope.queries.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A CTE, compiled on first use and written once at the start of the statement. */
function commonTable(compiler: Compiler, named: NamedQuery, text: string, scope: Scope): CommonTable {
  const { statement } = scope;
  const known = statement.compiledCtes.get(named.query);
  if (known !== undefined) return known;
  const query = compiler.query(named.query, { ...scope, ctes: named.scope, lambdaParameters: new Map() });
  const name = statement.commonTable(`with_${text}`, query.sql);
  const made = { name, columns: query.columns, tableCount: query.tableCount, typed: query.typed };
  statement.compiledCtes.set(named.query, made);
  return made;
}

/** A number that is not known before the query runs must not exceed what PostgreSQL can add. */
const inBounds = ({ sql: number, constant }: Value): Sql =>
  typeof constant === 'bigint' ? number : sql`least(greatest(${number}, 0), 1000000000000000)`;

/** numbers(n) and numbers(first, n), from expressions without columns, such as a date difference. */
function numbersRelation(compiler: Compiler, from: TableFunction, scope: Scope): Relation {
  const { statement } = scope;
  if (from.name.text !== 'numbers')
    throw statement.error(`Unknown table function '${from.name.text}'.`, from.name, 'Use numbers(n).');
  const values = from.arguments.map((node) => compiler.value(node, { ...scope, context: 'LIMIT' }));
  const [first, second] = values;
  const mismatched = values.findIndex(({ type }) => type.kind !== 'integer');
  if (first === undefined || values.length > 2 || mismatched !== -1)
    throw statement.error('numbers() takes one or two integers.', from.arguments[mismatched] ?? from);
  values.forEach(({ constant }, index) => {
    if (typeof constant === 'bigint' && constant < 0n)
      throw statement.error('numbers() takes non-negative integers.', from.arguments[index] ?? from);
  });
  const start = second === undefined ? sql`0::int8` : inBounds(first);
  const count = second ?? first;
  const name = from.alias?.text ?? 'numbers';
  const alias = statement.uniqueName(name);
  const rows = sql`(select generate_series(${start}, ${start} + ${inBounds(count)} - 1) as c1) as ${alias}`;
  const relation = queryRelation(name, rows, alias, [{ name: 'number', type: scalarType('integer') }]);
  return { ...relation, ordinal: () => sql`${alias}.c1` };
}
