import type { Expression, Select } from '../../ast.ts';
import { Grouping, LateralJoins, type Scope, WindowSizes, WindowSubquery } from '../../resolve/scope.ts';
import {
  columnIdentityOf,
  everyOperand,
  identityOf,
  type TypedQuery,
  type Value,
} from '../../resolve/value.ts';
import { bind, commaList, identifier, joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import { columnAlias, type CompiledQuery, type Compiler } from '../compiler.ts';
import { toCondition } from '../expressions/coerce.ts';
import { compileArrayJoin } from '../joins/array_joins.ts';
import {
  type CompiledFrom,
  lookUpConstants,
  pushDownPredicates,
  searchJoinedRows,
} from '../joins/compiled_from.ts';
import { compileFrom } from '../joins/from.ts';
import {
  groupedRows,
  isInGroups,
  totalsRow,
  collectAliases,
  compileOrder,
  compileOutput,
  groupSql,
  type Order,
  type Output,
  selectItems,
} from './select_items.ts';
import {
  integerConstant,
  isShareOfAllRows,
  limitedRows,
  limitSql,
  sortDirection,
  sortKey,
  cteScope,
} from './query_expressions.ts';
import { needsWindowSubquery } from './windows.ts';

/** The compiled parts of a SELECT. */
interface SelectParts {
  readonly select: Select;
  readonly outputs: readonly Output[];
  readonly order: readonly Order[];
  readonly qualify: Value | null;
  readonly limitBy: readonly Output[];
  readonly distinctOn: readonly Output[];
  /** FROM and WHERE. */
  readonly body: Sql;
  /** Whether FROM has the rows that LIMIT leaves. */
  readonly isPage: boolean;
  readonly scope: Scope;
}

const outputSql = ({ value }: Output): Sql =>
  value.type.kind === 'json' ? sql`(${value.sql})::jsonb` : value.sql;

const selected = (outputs: readonly Output[]): readonly Sql[] =>
  outputs.map((one, index) => sql`${outputSql(one)} as ${columnAlias(index + 1)}`);

/** The select list over each row of `body`. */
const selectedFrom = (outputs: readonly Output[], body: Sql): Sql =>
  sql`select ${commaList(selected(outputs))}${body}`;

/** Assembles the statement of a SELECT, as a single query where possible. @throws DialectError */
function assembleSelect(compiler: Compiler, parts: SelectParts): Sql {
  const { select, outputs, order, qualify, limitBy, body, scope } = parts;
  // Equal rows may have several sort keys: their first by ORDER BY counts, as with LIMIT 1 BY all columns.
  if (select.distinct && parts.distinctOn.length === 0 && limitBy.length === 0 && !sortsSelected(parts))
    return withInnerQuery(compiler, { ...parts, distinctOn: outputs });
  if (limitBy.length > 0 || qualify !== null || isShareOfAllRows(compiler, select.limit, scope))
    return withInnerQuery(compiler, parts);
  const distinct = distinctSql(parts);
  const sorted = sortSql(
    order.map((one) => ({
      fragment:
        select.distinct && parts.distinctOn.length === 0 && one.position !== null
          ? rawSql(String(one.position))
          : sortKey(outputSql(one), one.value.type),
      order: one,
    })),
  );
  const limit = parts.isPage ? sql`` : limitSql(compiler, select.limit, order.length > 0, scope);
  return sql`select ${distinct}${commaList(selected(outputs))}${body}${sorted}${limit}`;
}

/** Whether a query is sorted by columns of SELECT alone. */
function sortsSelected({ outputs, order }: SelectParts): boolean {
  const identities = new Set(outputs.map(({ value }) => identityOf(value)));
  return order.every(({ value }) => identities.has(identityOf(value)));
}

/** @throws DialectError for DISTINCT with LIMIT BY and keys that are not selected: equal rows may have different ones */
function rejectUnselected({ outputs, order, limitBy, scope: { statement } }: SelectParts): void {
  const identities = new Set(outputs.map(({ value }) => identityOf(value)));
  const isUnselected = ({ value }: Output): boolean => !identities.has(identityOf(value));
  const [sorted, grouped] = [order.find(isUnselected), limitBy.find(isUnselected)];
  if (sorted !== undefined)
    throw statement.error(
      'With DISTINCT and LIMIT BY, ORDER BY can use only columns of SELECT.',
      sorted.node,
    );
  if (grouped !== undefined)
    throw statement.error('With DISTINCT, LIMIT BY can use only columns of SELECT.', grouped.node);
}

/** DISTINCT ON keeps the first row by ORDER BY, which must start with the same expressions in PostgreSQL. */
function distinctSql({ select, distinctOn, order, scope }: SelectParts): Sql {
  if (!select.distinct) return sql``;
  if (distinctOn.length === 0) return sql`distinct `;
  const keys = new Set(distinctOn.map(({ value }) => identityOf(value)));
  if (order.some(({ value }, index) => index < keys.size && !keys.has(identityOf(value))))
    throw scope.statement.error(
      'ORDER BY must start with the DISTINCT ON expressions.',
      order[0]?.node ?? select,
      'Use LIMIT 1 BY instead.',
    );
  return sql`distinct on (${commaList(distinctOn.map((one) => sortKey(outputSql(one), one.value.type)))}) `;
}

function sortSql(items: readonly { readonly fragment: Sql; readonly order: Order }[]): Sql {
  if (items.length === 0) return sql``;
  return sql` order by ${commaList(items.map(({ fragment, order }) => sql`${fragment}${sortDirection(order.item, order.value.type)}`))}`;
}

/**
 * Computes the rows in an inner query, because QUALIFY and LIMIT BY read window functions and shares read the row
 * count. DISTINCT applies between QUALIFY and LIMIT BY; DISTINCT ON is LIMIT 1 BY.
 */
function withInnerQuery(compiler: Compiler, parts: SelectParts): Sql {
  const { select, outputs, order, qualify, limitBy, distinctOn, body, scope } = parts;
  const { statement } = scope;
  if (limitBy.length > 0 && distinctOn.length > 0)
    throw statement.error('DISTINCT ON cannot be combined with LIMIT BY.', select, 'Remove one of them.');
  const isDistinct = select.distinct && distinctOn.length === 0;
  if (isDistinct) rejectUnselected(parts);
  const limitByOutputs = limitBy.length > 0 ? limitBy : distinctOn;
  const word = isDistinct ? sql`distinct ` : sql``;
  const keys = order.map(
    (one, index) => sql`${sortKey(outputSql(one), one.value.type)} as ${identifier(`o${index + 1}`)}`,
  );
  const groups = limitByOutputs.map((one, index) => sql`${outputSql(one)} as ${identifier(`b${index + 1}`)}`);
  const kept = qualify === null ? [] : [sql`${qualify.sql} as q`];
  let rows = sql`select ${qualify === null ? word : sql``}${commaList([...selected(outputs), ...keys, ...groups, ...kept])}${body}`;
  if (qualify !== null) {
    const alias = statement.uniqueName('qualified');
    rows = sql`select ${word}* from (${rows}) as ${alias} where ${alias}.q`;
  }
  const sorted = sortSql(order.map((one, index) => ({ fragment: identifier(`o${index + 1}`), order: one })));
  if (limitByOutputs.length > 0)
    rows = limitByRows(rows, limitByOutputs, limitByBounds(compiler, parts), sorted, scope);
  const alias = statement.uniqueName('inner_rows');
  const columns = commaList(outputs.map((_, index) => sql`${alias}.${columnAlias(index + 1)}`));
  return limitedRows(compiler, select.limit, { columns, rows, alias, sorted }, scope);
}

interface LimitByBounds {
  readonly count: bigint;
  readonly offset: bigint;
}

function limitByBounds(compiler: Compiler, { select: { limitBy }, scope }: SelectParts): LimitByBounds {
  if (limitBy === null) return { count: 1n, offset: 0n };
  const { count, offset } = limitBy;
  return {
    count: integerConstant(compiler, count, scope, 'LIMIT'),
    offset: offset === null ? 0n : integerConstant(compiler, offset, scope, 'OFFSET'),
  };
}

function limitByRows(
  rows: Sql,
  limitByOutputs: readonly Output[],
  { count, offset }: LimitByBounds,
  sorted: Sql,
  { statement }: Scope,
): Sql {
  const [inner, outer] = [statement.uniqueName('rows'), statement.uniqueName('numbered')];
  const groups = commaList(limitByOutputs.map((_, index) => sql`${inner}.${identifier(`b${index + 1}`)}`));
  const number = sql`row_number() over (partition by ${groups}${sorted}) as n`;
  return sql`select * from (select ${inner}.*, ${number} from (${rows}) as ${inner}) as ${outer}
    where ${outer}.n > ${bind(String(offset), 'int8')} and ${outer}.n <= ${bind(String(offset + count), 'int8')}`;
}

/** The compiled clauses of a SELECT. */
interface SelectClauses {
  readonly from: CompiledFrom | null;
  readonly conditions: readonly Value[];
  readonly grouping: Grouping;
  readonly having: Value | null;
  readonly outputs: Pick<SelectParts, 'outputs' | 'order' | 'qualify' | 'limitBy' | 'distinctOn'>;
}

/** What decides whether rows can be chosen before they are joined. */
interface PageParts {
  readonly from: CompiledFrom | null;
  readonly conditions: readonly Value[];
  readonly outputs: OutputParts;
  readonly scope: Scope;
}

/** The typed representation of a SELECT, in the order in which its clauses are computed. */
function typedSelect({ from, conditions, grouping, having, outputs }: SelectClauses): TypedQuery {
  const clauses = [
    { name: 'where', values: conditions },
    { name: 'group by', values: grouping.keys.map(({ value }) => value) },
    { name: 'having', values: having === null ? [] : [having] },
    { name: 'select', values: outputs.outputs.map(({ value }) => value) },
    { name: 'qualify', values: outputs.qualify === null ? [] : [outputs.qualify] },
    { name: 'distinct on', values: outputs.distinctOn.map(({ value }) => value) },
    { name: 'order by', values: outputs.order.map(({ value }) => value) },
    { name: 'limit by', values: outputs.limitBy.map(({ value }) => value) },
  ];
  return {
    operation: 'query',
    sources: from?.sources ?? [],
    clauses: clauses.filter(({ values }) => values.length > 0),
  };
}

/** @throws DialectError for an ungrouped column in a grouping query */
function rejectUngrouped(outputs: readonly Output[], having: Value | null, scope: Scope): void {
  const values = [...outputs.map(({ value }) => value), ...(having === null ? [] : [having])];
  for (const { traits } of values) {
    const { column } = traits;
    if (column === null) continue;
    const { text } = scope.statement.queryText;
    const columnText = text.slice(column.start, column.end);
    throw scope.statement.error(
      `Column \`${columnText}\` is neither under an aggregate function nor in GROUP BY.`,
      column,
      `Add it to GROUP BY, or write any(${columnText}).`,
    );
  }
}

/**
 * Chooses rows by WHERE, ORDER BY and LIMIT before FROM joins others to them, if these read columns of its relation alone.
 * @returns whether it did
 */
function limitBeforeJoins(compiler: Compiler, select: Select, parts: PageParts): boolean {
  const { from, conditions, outputs, scope } = parts;
  const { limit } = select;
  const [relation, another] = from?.relations ?? [];
  const target = another === undefined ? relation?.pageTarget?.() : null;
  const isPlain =
    !select.distinct && select.limitBy === null && select.qualify === null && select.arrayJoin === null;
  if (!target || !isPlain || limit === null || limit.withTies || !limit.count) return false;
  if (isShareOfAllRows(compiler, limit, scope) || scope.lateralJoins.joins.length > 0) return false;
  if (allOutputs(outputs).some(({ value }) => value.traits.window !== null)) return false;
  const isOwn = (operand: Value): boolean =>
    columnIdentityOf(operand) === undefined || target.columns.has(operand.sql);
  const read = [...conditions, ...outputs.order.map(({ value }) => value)];
  if (!read.every((value) => everyOperand(value, isOwn))) return false;
  const sorted = sortSql(
    outputs.order.map((one) => ({ fragment: sortKey(outputSql(one), one.value.type), order: one })),
  );
  const bounds = limitSql(compiler, limit, !sorted.isEmpty, scope);
  target.limitTo(sql`${whereSql(conditions)}${sorted}${bounds}`);
  return true;
}

/** WHERE with a leading space; empty without conditions. */
const whereSql = (conditions: readonly { readonly sql: Sql }[]): Sql =>
  conditions.length === 0
    ? sql``
    : sql` where ${joinSql(
        conditions.map((one) => one.sql),
        ' and ',
      )}`;

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
  const groupJoins = new LateralJoins();
  const scope: Scope = { ...rows, grouping, windowSizes, ...(!withTotals && { groupJoins }) };
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
  const isPage =
    !isGrouped &&
    windowSubquery === undefined &&
    limitBeforeJoins(compiler, select, { from, conditions, outputs: outputParts, scope });
  if (!isPage) pushDownPredicates(compiler, filters, filterScope);
  lookUpConstants(compiler, filters, filterScope);
  searchJoinedRows(compiler, filters, filterScope);
  const source = (...more: readonly Sql[]): Sql => {
    const joined = [from === null ? null : from.sql(), ...lateralJoins.joins].filter((part) => part !== null);
    const tables =
      from === null && lateralJoins.joins.length > 0 ? [sql`(select) as nothing`, ...joined] : joined;
    const read = tables.length === 0 ? sql`` : sql` from ${joinSql(tables, '')}`;
    const left = isPage ? [] : [...conditions, ...more.map((one) => ({ sql: one }))];
    return sql`${read}${whereSql(left)}`;
  };
  const grouped = (): Sql => {
    const groups = groupedRows(grouping, source(), select.groupBy, groupBy);
    const joins = joinSql(groupJoins.joins, '');
    if (having === null) return sql` from (${groups}) as ${grouping.alias}${joins}`;
    const rows = withTotals ? statement.commonTable('groups', groups) : sql`(${groups})`;
    return sql` from ${rows} as ${grouping.alias}${joins} where ${having.sql}`;
  };
  const withWindowSubquery = (rows: Sql): Sql =>
    windowSubquery === undefined
      ? rows
      : sql` from (select ${commaList(windowSubquery.selected)}${rows}) as ${windowSubquery.alias}`;
  const sourceRows = isGrouped ? grouped() : source();
  windowSizes.addTables(sourceRows);
  return {
    typed: typedSelect({ from, conditions, grouping, having, outputs: outputParts }),
    sql: assembleSelect(compiler, {
      select,
      ...outputParts,
      body: withWindowSubquery(sourceRows),
      isPage,
      scope,
    }),
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

type OutputParts = Pick<SelectParts, 'outputs' | 'order' | 'qualify' | 'limitBy' | 'distinctOn'>;

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
