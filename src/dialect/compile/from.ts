import type { From, Join, Table, TableFunction } from '../ast.ts';
import { identifiedRelation, queryRelation, sortedRelation } from '../resolve/query_relation.ts';
import type { Relation } from '../resolve/relation.ts';
import type { CommonTable } from '../resolve/statement.ts';
import type { CteScope, NamedQuery, Scope } from '../resolve/scope.ts';
import { unsupportedSampleError } from '../resolve/tables/sampling.ts';
import { tableRelation } from '../resolve/tables/tables.ts';
import type { TypedQuery } from '../resolve/value.ts';
import { sql } from '../sql.ts';
import { scalar } from '../types.ts';
import type { CompiledFrom } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { compileJoin } from './joins.ts';

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

/** numbers(n) and numbers(first, n). */
function numbersRelation(compiler: Compiler, from: TableFunction, scope: Scope): Relation {
  const { statement } = scope;
  if (from.name.text !== 'numbers')
    throw statement.error(`Unknown table function '${from.name.text}'.`, from.name, 'Use numbers(n).');
  const values = from.arguments.map((node) => compiler.value(node, { ...scope, context: 'LIMIT' }));
  const [first, second] = values;
  if (first === undefined || values.length > 2 || values.some(({ constant }) => typeof constant !== 'bigint'))
    throw statement.error('numbers() takes one or two integers.', from);
  values.forEach(({ constant }, index) => {
    if (typeof constant === 'bigint' && constant < 0n)
      throw statement.error('numbers() takes non-negative integers.', from.arguments[index] ?? from);
  });
  const start = second === undefined ? sql`0::int8` : first.sql;
  const count = second ?? first;
  const name = from.alias?.text ?? 'numbers';
  const alias = statement.uniqueName(name);
  const rows = sql`(select generate_series(${start}, ${start} + ${count.sql} - 1) as c1) as ${alias}`;
  const relation = queryRelation(name, rows, alias, [{ name: 'number', type: scalar('integer') }]);
  return { ...relation, ordinal: () => sql`${alias}.c1` };
}
