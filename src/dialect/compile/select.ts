import type { Expression, Select } from '../ast.ts';
import { Grouping, Laterals, type Scope } from '../resolve/scope.ts';
import { Staging } from '../resolve/staging.ts';
import type { Value } from '../resolve/value.ts';
import { commaList, joinSql, sql, type Sql } from '../sql.ts';
import { compileArrayJoin } from './array_joins.ts';
import { condition } from './coerce.ts';
import { cteScope } from './ctes.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';
import { compileFrom } from './from.ts';
import { groupSql } from './group_by.ts';
import { groupedRows } from './grouped_rows.ts';
import { narrowRelations } from './narrowing.ts';
import { assemble, selectedFrom, type SelectParts } from './select_assembly.ts';
import { collectAliases, orderOf, output, type Output, selectItems } from './select_items.ts';
import { needsStaging } from './staged_values.ts';
import { isOfGroups, totalsOf } from './totals.ts';
import { refuseUngrouped } from './ungrouped.ts';

/** One SELECT. @throws DialectError */
export function compileSelect(compiler: Compiler, select: Select, outer: Scope): CompiledQuery {
  const ctes = cteScope(select.ctes, outer.ctes);
  const laterals = new Laterals();
  const { statement } = outer;
  const base: Scope = {
    statement,
    phase: 'select',
    aggregate: null,
    relations: [],
    merged: new Map(),
    laterals,
    outerRelations: [...outer.outerRelations, ...outer.relations],
    aliases: new Map(),
    joinedArrays: new Map(),
    ctes,
    lambdas: outer.lambdas,
    lambdaDepth: outer.lambdaDepth,
    expanding: [],
    grouping: null,
    windows: new Map(select.windows.map(({ name, window }) => [name.text, window])),
  };
  const from = select.from === null ? null : compileFrom(compiler, select.from, base);
  const named: Scope = {
    ...base,
    relations: from?.relations ?? [],
    merged: from?.merged ?? base.merged,
    aliases: collectAliases(select, base),
  };
  const joinedArrays =
    select.arrayJoin === null ? base.joinedArrays : compileArrayJoin(compiler, select.arrayJoin, named);
  const rows: Scope = { ...named, joinedArrays };
  const filters = [select.prewhere, select.where].filter((node) => node !== null);
  const filterScope: Scope = { ...rows, phase: 'WHERE' };
  const conditions = filters.map((node) => filterOf(compiler, node, filterScope));
  const withTotals = select.groupBy?.withTotals === true;
  const grouping = new Grouping(statement.uniqueName('grouped'), withTotals);
  const groupBy = select.groupBy === null ? null : groupSql(compiler, select.groupBy, select, rows, grouping);
  const scope: Scope = { ...rows, grouping };
  const having = select.having === null ? null : filterOf(compiler, select.having, scope, true);
  const unstaged = shownParts(compiler, select, scope);
  const staging = isStaged(select, unstaged, scope)
    ? new Staging(statement.uniqueName('windows'))
    : undefined;
  const shown = staging === undefined ? unstaged : shownParts(compiler, select, { ...scope, staging });
  const isGrouped = grouping.isUsed || groupBy !== null;
  if (isGrouped) refuseUngrouped(allOutputs(unstaged), having, scope);
  if (having !== null && !isGrouped)
    throw statement.error('HAVING needs GROUP BY or an aggregate.', select.having ?? select, 'Write WHERE.');
  narrowRelations(compiler, filters, filterScope);
  const source = (...more: readonly Sql[]): Sql => {
    const joined = [from === null ? null : from.sql(), ...laterals.joins].filter((part) => part !== null);
    const tables =
      from === null && laterals.joins.length > 0 ? [sql`(select) as nothing`, ...joined] : joined;
    const all = [...conditions.map((one) => one.sql), ...more];
    const where = all.length === 0 ? sql`` : sql` where ${joinSql(all, ' and ')}`;
    const read = tables.length === 0 ? sql`` : sql` from ${joinSql(tables, '')}`;
    return sql`${read}${where}`;
  };
  const grouped = (): Sql => {
    const groups = groupedRows(grouping, source(), select.groupBy, groupBy);
    if (having === null) return sql` from (${groups}) as ${grouping.alias}`;
    const rows = withTotals ? statement.commonTable('groups', groups) : sql`(${groups})`;
    return sql` from ${rows} as ${grouping.alias} where ${having.sql}`;
  };
  const bodyOf = (rows: Sql): Sql =>
    staging === undefined
      ? rows
      : sql` from (select ${commaList(staging.selected)}${rows}) as ${staging.alias}`;
  const rowsOf = isGrouped ? grouped() : source();
  return {
    sql: assemble(compiler, { select, ...shown, body: bodyOf(rowsOf), scope }),
    columns: shown.outputs.map(({ name, value }) => ({ name, type: value.type })),
    tables: isGrouped || isBounded(select) || staging !== undefined ? 1 : (from?.tables ?? 1),
    ...(withTotals && {
      totals: selectedFrom(
        shown.outputs,
        bodyOf(totalsOf(grouping, having === null ? source() : source(isOfGroups(grouping, rowsOf)))),
      ),
    }),
  };
}

/** Whether it is a query of its own for PostgreSQL, which plans a plain one together with those around it. */
const isBounded = ({ distinct, qualify, limitBy, limit }: Select): boolean =>
  distinct || qualify !== null || limitBy !== null || limit !== null;

type ShownParts = Pick<SelectParts, 'outputs' | 'order' | 'qualify' | 'limitBy' | 'distinctOn'>;

/** What is made of the rows, or of the groups of them. */
function shownParts(compiler: Compiler, select: Select, scope: Scope): ShownParts {
  const outputs = selectItems(compiler, select, scope);
  return {
    outputs,
    qualify: select.qualify === null ? null : filterOf(compiler, select.qualify, scope, true),
    order: select.orderBy.map((item) => orderOf(compiler, item, select, outputs, scope)),
    limitBy: select.limitBy?.by.map((node) => output(compiler, node, select, scope)) ?? [],
    distinctOn: select.distinctOn.map((node) => output(compiler, node, select, scope)),
  };
}

const allOutputs = ({ outputs, order, limitBy, distinctOn }: ShownParts): readonly Output[] => [
  ...outputs,
  ...order,
  ...limitBy,
  ...distinctOn,
];

function isStaged(select: Select, parts: ShownParts, scope: Scope): boolean {
  const { qualify } = parts;
  return (
    allOutputs(parts).some(({ node, value }) => needsStaging(node, value, scope)) ||
    (select.qualify !== null && qualify !== null && needsStaging(select.qualify, qualify, scope))
  );
}

function filterOf(compiler: Compiler, node: Expression, scope: Scope, mayAggregate = false): Value {
  const value = compiler.value(node, scope, 'filter');
  if (!mayAggregate && value.facts.window !== null)
    throw scope.statement.error(
      'A window function cannot stand in WHERE.',
      value.facts.window,
      'Write QUALIFY.',
    );
  return { ...value, sql: condition(value, node, scope.statement) };
}
