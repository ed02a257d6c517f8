import type { From, Join, Table, TableFunction } from '../ast.ts';
import { optionalRelation, queryRelation, sortedRelation } from '../resolve/query_relation.ts';
import type { Relation } from '../resolve/relation.ts';
import type { CteScope, NamedQuery, Scope } from '../resolve/scope.ts';
import { tableRelation } from '../resolve/tables/tables.ts';
import { joinSql, ownText, sql, type Sql } from '../sql.ts';
import { scalar } from '../types.ts';
import { condition } from './coerce.ts';
import type { CompiledColumn, Compiler } from './compiler.ts';

/** What stands in FROM. Its SQL is asked for last, since relations read what the rest of the query needs of them. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** Columns of USING. */
  readonly merged: readonly string[];
  readonly sql: () => Sql;
}

/** @throws DialectError */
export function compileFrom(compiler: Compiler, from: From, scope: Scope): CompiledFrom {
  if (from.kind === 'join') return compileJoin(compiler, from, scope);
  const relation = compileRelation(compiler, from, scope);
  return { relations: [relation], merged: [], sql: () => relation.from() };
}

function compileRelation(compiler: Compiler, from: Exclude<From, Join>, scope: Scope): Relation {
  if (from.kind === 'table') return compileTable(compiler, from, scope);
  if (from.kind === 'table_function') return numbersRelation(compiler, from, scope);
  const query = compiler.query(from.query, scope);
  const name = from.alias?.text ?? null;
  const alias = scope.statement.uniqueName(name ?? 'query');
  return from.query.orderBy.length > 0
    ? sortedRelation(name, sql`(${query.sql})`, alias, query.columns)
    : queryRelation(name, sql`(${query.sql}) as ${alias}`, alias, query.columns);
}

function compileTable(compiler: Compiler, table: Table, scope: Scope): Relation {
  const { statement } = scope;
  if (table.sample !== null)
    throw statement.error('SAMPLE is not supported.', table.sample, 'Leave it out: all rows are read.');
  const [first, ...rest] = table.path;
  const named = first === undefined || rest.length > 0 ? undefined : findCte(first.text, scope.ctes);
  if (named === undefined) return tableRelation(statement, table);
  const common = commonTable(compiler, named, first?.text ?? '', scope);
  const name = table.alias?.text ?? first?.text ?? null;
  const alias = statement.uniqueName(name ?? 'query');
  return named.query.orderBy.length > 0
    ? sortedRelation(name, common.name, alias, common.columns)
    : queryRelation(name, sql`${common.name} as ${alias}`, alias, common.columns);
}

function findCte(name: string, ctes: CteScope | null): NamedQuery | undefined {
  for (let scope = ctes; scope !== null; scope = scope.outer) {
    const found = scope.queries.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A query with a name: compiled where it is used first, and written once at the beginning of the statement. */
function commonTable(
  compiler: Compiler,
  named: NamedQuery,
  text: string,
  scope: Scope,
): { readonly name: Sql; readonly columns: readonly CompiledColumn[] } {
  const { statement } = scope;
  const known = statement.namedQueries.get(named.query);
  if (known !== undefined) return known;
  const query = compiler.query(named.query, { ...scope, ctes: named.scope });
  const made = { name: statement.uniqueName(`with_${text}`), columns: query.columns };
  statement.commonTables.push({ name: made.name, query: query.sql });
  statement.namedQueries.set(named.query, made);
  return made;
}

/** numbers(n) and numbers(first, n). */
function numbersRelation(compiler: Compiler, from: TableFunction, scope: Scope): Relation {
  const { statement } = scope;
  if (from.name.text !== 'numbers')
    throw statement.error(`Unknown table function '${from.name.text}'.`, from.name, 'There is numbers(n).');
  const values = from.arguments.map((node) => compiler.value(node, { ...scope, phase: 'LIMIT' }));
  const [first, second] = values;
  if (first === undefined || values.length > 2 || values.some(({ constant }) => typeof constant !== 'bigint'))
    throw statement.error('numbers() takes one or two whole numbers.', from);
  const start = second === undefined ? sql`0::int8` : first.sql;
  const count = second ?? first;
  const name = from.alias?.text ?? 'numbers';
  const alias = statement.uniqueName(name);
  const rows = sql`(select generate_series(${start}, ${start} + ${count.sql} - 1) as c1) as ${alias}`;
  const relation = queryRelation(name, rows, alias, [{ name: 'number', type: scalar('integer') }]);
  return { ...relation, ordinal: () => sql`${alias}.c1` };
}

function compileJoin(compiler: Compiler, join: Join, scope: Scope): CompiledFrom {
  const { statement } = scope;
  if (join.strictness !== null && join.strictness !== 'all')
    throw statement.error(
      `${join.strictness.toUpperCase()} joins are not supported.`,
      join.right,
      suggestions[join.strictness],
    );
  const left = compileFrom(compiler, join.left, scope);
  const right = compileFrom(compiler, join.right, scope);
  refuseSameName(left.relations, right.relations, join, scope);
  const relations = [
    ...(join.type === 'right' || join.type === 'full'
      ? left.relations.map(optionalRelation)
      : left.relations),
    ...(join.type === 'left' || join.type === 'full'
      ? right.relations.map(optionalRelation)
      : right.relations),
  ];
  const inside: Scope = {
    ...scope,
    relations: [...left.relations, ...right.relations],
    phase: 'JOIN',
    aliases: new Map(),
  };
  const words = ownText(`${join.type} join`);
  const merged = [...left.merged, ...right.merged];
  const { constraint } = join;
  if (constraint === null)
    return { relations, merged, sql: () => sql`${left.sql()} ${words} ${bracketed(right)}` };
  if (constraint.kind === 'using') {
    const conditions = constraint.columns.map((name) => {
      const [one, other] = [memberOf(left, name.text), memberOf(right, name.text)];
      if (one === undefined || other === undefined)
        throw statement.error(`The column \`${name.text}\` of USING is not in both tables.`, name);
      return sql`${one} = ${other}`;
    });
    const all = joinSql(conditions, ' and ');
    const names = constraint.columns.map(({ text }) => text);
    return {
      relations,
      merged: [...merged, ...names],
      sql: () => sql`${left.sql()} ${words} ${bracketed(right)} on ${all}`,
    };
  }
  const value = compiler.value(constraint.condition, inside, 'join');
  const on = condition(value, constraint.condition, statement);
  return { relations, merged, sql: () => sql`${left.sql()} ${words} ${bracketed(right)} on ${on}` };
}

const bracketed = (from: CompiledFrom): Sql =>
  from.relations.length > 1 ? sql`(${from.sql()})` : from.sql();

function memberOf(from: CompiledFrom, name: string): Sql | undefined {
  for (const relation of from.relations) {
    const member = relation.member(name);
    if (member?.kind === 'column') return member.sql;
  }
  return undefined;
}

const suggestions: Readonly<Record<'any' | 'asof' | 'semi' | 'anti', string>> = {
  any: 'Join a query with LIMIT 1 BY what the tables are joined by.',
  asof: 'Join on a range, or use argMax(x, timestamp).',
  semi: 'Write WHERE x IN (SELECT …).',
  anti: 'Write WHERE x NOT IN (SELECT …).',
};

function refuseSameName(
  left: readonly Relation[],
  right: readonly Relation[],
  join: Join,
  { statement }: Scope,
): void {
  for (const { name } of right)
    if (name !== null && left.some((relation) => relation.name === name))
      throw statement.error(`Already have joined a table called "${name}". Can't redefine.`, join.right);
}
