import type { Join } from '../ast.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { toCondition } from './coerce.ts';
import { compareValues } from './comparisons.ts';
import { parenthesized, type CompiledFrom, mapColumns } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { compileSingleMatchJoin } from './single_match_joins.ts';
import { usingColumn, usingOperands } from './using_columns.ts';

/**
 * Maximum number of tables in one FROM. PostgreSQL plans 20 in half a second, 30 in two and 80 in nine, and seldom
 * checks the statement timeout while planning.
 */
const maxJoinedTables = 20;

/** Compiles a join. @throws DialectError */
export function compileJoin(
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
