import type { Join } from '../ast.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { joinSql, ownText, sql, type Sql } from '../sql.ts';
import { condition } from './coerce.ts';
import { compareValues } from './comparisons.ts';
import { bracketed, type CompiledFrom, mappedNames } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { compilePickingJoin } from './picking_joins.ts';
import { mergedColumn, sidesOf } from './using_columns.ts';

/**
 * Tables of one FROM. PostgreSQL plans 20 in half a second, 30 in two and 80 in nine, and it seldom
 * looks at the time limit of a statement meanwhile.
 */
const mostJoined = 20;

/** Two sides of FROM that are joined. @throws DialectError */
export function compileJoin(
  compiler: Compiler,
  join: Join,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): CompiledFrom {
  const { statement } = scope;
  refuseSameName(left, right, join, scope);
  const tables = left.tables + right.tables;
  if (tables > mostJoined)
    throw statement.error(
      `A FROM joins at most ${mostJoined} tables.`,
      join.right,
      'Group or bound some of them in a subquery.',
    );
  if (join.strictness !== null && join.strictness !== 'all')
    return compilePickingJoin(compiler, join, join.strictness, left, right, scope);
  const { type, constraint } = join;
  const leftNames = type === 'right' || type === 'full' ? mappedNames(left, optionalColumn) : left;
  const rightNames = type === 'left' || type === 'full' ? mappedNames(right, optionalColumn) : right;
  const relations = [...leftNames.relations, ...rightNames.relations];
  const merged = new Map([...rightNames.merged, ...leftNames.merged]);
  const words = ownText(`${type} join`);
  const joined = (on: Sql): Pick<CompiledFrom, 'tables' | 'isJoin' | 'sql'> => ({
    tables,
    isJoin: true,
    sql: () => sql`${left.sql()} ${words} ${bracketed(right)}${on}`,
  });
  if (constraint === null) return { relations, merged, ...joined(sql``) };
  if (constraint.kind === 'on') {
    const inside: Scope = {
      ...scope,
      relations: [...left.relations, ...right.relations],
      phase: 'JOIN',
      aliases: new Map(),
    };
    const value = compiler.value(constraint.condition, inside, 'join');
    const on = condition(value, constraint.condition, statement);
    return { relations, merged, ...joined(sql` on ${on}`) };
  }
  const conditions = constraint.columns.map((name) => {
    const sides = sidesOf(left, right, name, statement);
    merged.set(name.text, mergedColumn(type, sides, statement));
    return compareValues('=', sides, 'join', statement).sql;
  });
  return { relations, merged, ...joined(sql` on ${joinSql(conditions, ' and ')}`) };
}

function refuseSameName(left: CompiledFrom, right: CompiledFrom, join: Join, { statement }: Scope): void {
  for (const { name } of right.relations)
    if (name !== null && left.relations.some((relation) => relation.name === name))
      throw statement.error(`Already have joined a table called "${name}". Can't redefine.`, join.right);
}
