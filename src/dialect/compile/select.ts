import type { Expression, Select } from '../ast.ts';
import { Grouping, LateralJoins, type Scope } from '../resolve/scope.ts';
import { WindowSizes } from '../resolve/window_sizes.ts';
import { WindowSubquery } from '../resolve/window_subquery.ts';
import { identityOf, type Value } from '../resolve/value.ts';
import { commaList, joinSql, sql, type Sql } from '../sql.ts';
import { compileArrayJoin } from './array_joins.ts';
import { toCondition } from './coerce.ts';
import { cteScope } from './ctes.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';
import { compileFrom } from './from.ts';
import { groupSql } from './group_by.ts';
import { groupedRows } from './grouped_rows.ts';
import { lookUpConstants } from './constant_lookups.ts';
import { pushDownPredicates } from './predicate_pushdown.ts';
import { assembleSelect, selectedFrom, type SelectParts } from './select_assembly.ts';
import { collectAliases, compileOrder, compileOutput, type Output, selectItems } from './select_items.ts';
import { needsWindowSubquery } from './window_subquery_values.ts';
import { typedSelect } from './typed_select.ts';
import { isInGroups, totalsRow } from './totals.ts';
import { rejectUngrouped } from './ungrouped_columns.ts';

/** Compiles one SELECT. @throws DialectError */
export function compileSelect(compiler: Compiler, select: Select, outer: Scope): CompiledQuery {
  const ctes = cteScope(select.ctes, outer.ctes);
  const lateralJoins = new LateralJoins();
  const { statement } = outer;
  const base: Scope = {
    statement,
    context: 'select',
    enclosingAggregate: null,
    relations: [],
    usingColumns: new Map(),
    lateralJoins,
    outerRelations: [...outer.outerRelations, ...outer.relations],
    aliases: new Map(),
    arrayJoinColumns: new Map(),
    ctes,
    lambdaParameters: outer.lambdaParameters,
    lambdaDepth: outer.lambdaDepth,
    expandingAliases: [],
    grouping: null,
    windows: new Map(select.windows.map(({ name, window }) => [name.text, window])),
  };
  const from = select.from === null ? null : compileFrom(compiler, select.from, base);
  const named: Scope = {
    ...base,
    relations: from?.relations ?? [],
    usingColumns: from?.usingColumns ?? base.usingColumns,
    aliases: collectAliases(select, base),
  };
  const arrayJoinColumns =
    select.arrayJoin === null ? base.arrayJoinColumns : compileArrayJoin(compiler, select.arrayJoin, named);
  const rows: Scope = { ...named, arrayJoinColumns };
  const filters = [select.prewhere, select.where].filter((node) => node !== null);
  const filterScope: Scope = { ...rows, context: 'WHERE' };
  const conditions = filters.map((node) => filterOf(compiler, node, filterScope));
  const withTotals = select.groupBy?.withTotals === true;
  const grouping = new Grouping(statement.uniqueName('grouped'), withTotals);
  const groupBy = select.groupBy === null ? null : groupSql(compiler, select.groupBy, select, rows, grouping);
  const windowSizes = new WindowSizes(statement);
  const scope: Scope = { ...rows, grouping, windowSizes };
  const having = select.having === null ? null : filterOf(compiler, select.having, scope, true);
  const directOutputs = compileOutputs(compiler, select, scope);
  const windowSubquery = needsInnerQuery(select, directOutputs, scope)
    ? new WindowSubquery(statement.uniqueName('windows'))
    : undefined;
  const outputParts =
    windowSubquery === undefined
      ? directOutputs
      : compileOutputs(compiler, select, { ...scope, windowSubquery });
  const isGrouped = grouping.isUsed || groupBy !== null;
  if (isGrouped) rejectUngrouped(allOutputs(directOutputs), having, scope);
  if (having !== null && !isGrouped)
    throw statement.error('HAVING requires GROUP BY or an aggregate.', select.having ?? select, 'Use WHERE.');
  pushDownPredicates(compiler, filters, filterScope);
  lookUpConstants(compiler, filters, filterScope);
  const source = (...more: readonly Sql[]): Sql => {
    const joined = [from === null ? null : from.sql(), ...lateralJoins.joins].filter((part) => part !== null);
    const tables =
      from === null && lateralJoins.joins.length > 0 ? [sql`(select) as nothing`, ...joined] : joined;
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
  const withWindowSubquery = (rows: Sql): Sql =>
    windowSubquery === undefined
      ? rows
      : sql` from (select ${commaList(windowSubquery.selected)}${rows}) as ${windowSubquery.alias}`;
  const sourceRows = isGrouped ? grouped() : source();
  windowSizes.addTables(sourceRows);
  return {
    typed: typedSelect({ from, conditions, grouping, having, outputs: outputParts }),
    sql: assembleSelect(compiler, { select, ...outputParts, body: withWindowSubquery(sourceRows), scope }),
    columns: outputParts.outputs.map(({ name, value }) => ({ name, type: value.type })),
    tableCount: isGrouped || isBounded(select) || windowSubquery !== undefined ? 1 : (from?.tableCount ?? 1),
    ...(withTotals && {
      totals: selectedFrom(
        outputParts.outputs,
        withWindowSubquery(
          totalsRow(grouping, having === null ? source() : source(isInGroups(grouping, sourceRows))),
        ),
      ),
    }),
  };
}

/** Whether PostgreSQL plans it separately; a plain query is planned together with the outer one. */
const isBounded = ({ distinct, qualify, limitBy, limit }: Select): boolean =>
  distinct || qualify !== null || limitBy !== null || limit !== null;

export type OutputParts = Pick<SelectParts, 'outputs' | 'order' | 'qualify' | 'limitBy' | 'distinctOn'>;

/** Compiles everything computed from the rows or their groups. */
function compileOutputs(compiler: Compiler, select: Select, scope: Scope): OutputParts {
  const outputs = selectItems(compiler, select, scope);
  const distinctOn = select.distinctOn.map((node) => compileOutput(compiler, node, select, scope));
  const known = new Map([...distinctOn, ...outputs].map(({ value }) => [identityOf(value), value]));
  // PostgreSQL compares the keys of DISTINCT ON and ORDER BY by their SQL.
  const shared = <One extends Output>(one: One): One => ({
    ...one,
    value: known.get(identityOf(one.value)) ?? one.value,
  });
  return {
    outputs,
    qualify: select.qualify === null ? null : filterOf(compiler, select.qualify, scope, true),
    order: select.orderBy.map((item) => shared(compileOrder(compiler, item, select, outputs, scope))),
    limitBy: select.limitBy?.by.map((node) => compileOutput(compiler, node, select, scope)) ?? [],
    distinctOn: distinctOn.map(shared),
  };
}

const allOutputs = ({ outputs, order, limitBy, distinctOn }: OutputParts): readonly Output[] => [
  ...outputs,
  ...order,
  ...limitBy,
  ...distinctOn,
];

function needsInnerQuery(select: Select, parts: OutputParts, scope: Scope): boolean {
  const { qualify } = parts;
  return (
    allOutputs(parts).some(({ node, value }) => needsWindowSubquery(node, value, scope)) ||
    (select.qualify !== null && qualify !== null && needsWindowSubquery(select.qualify, qualify, scope))
  );
}

function filterOf(compiler: Compiler, node: Expression, scope: Scope, mayAggregate = false): Value {
  const value = compiler.value(node, scope, 'filter');
  if (!mayAggregate && value.traits.window !== null)
    throw scope.statement.error(
      'A window function is not allowed in WHERE.',
      value.traits.window,
      'Use QUALIFY.',
    );
  return { ...value, sql: toCondition(value, node, scope.statement) };
}
