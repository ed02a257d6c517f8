import type { Select } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { identityOf, type Value } from '../resolve/value.ts';
import { bind, commaList, identifier, rawSql, sql, type Sql } from '../sql.ts';
import { type Compiler, columnAlias } from './compiler.ts';
import { isShareOfAllRows, limitedRows, limitSql, integerConstant } from './limit_clause.ts';
import { sortDirection, sortKey } from './order_items.ts';
import type { Order, Output } from './select_items.ts';

/** The compiled parts of a SELECT. */
export interface SelectParts {
  readonly select: Select;
  readonly outputs: readonly Output[];
  readonly order: readonly Order[];
  readonly qualify: Value | null;
  readonly limitBy: readonly Output[];
  readonly distinctOn: readonly Output[];
  /** FROM and WHERE. */
  readonly body: Sql;
  readonly scope: Scope;
}

const outputSql = ({ value }: Output): Sql =>
  value.type.kind === 'json' ? sql`(${value.sql})::jsonb` : value.sql;

const selected = (outputs: readonly Output[]): readonly Sql[] =>
  outputs.map((one, index) => sql`${outputSql(one)} as ${columnAlias(index + 1)}`);

/** The select list over each row of `body`. */
export const selectedFrom = (outputs: readonly Output[], body: Sql): Sql =>
  sql`select ${commaList(selected(outputs))}${body}`;

/** Assembles the statement of a SELECT, as a single query where possible. @throws DialectError */
export function assembleSelect(compiler: Compiler, parts: SelectParts): Sql {
  const { select, outputs, order, qualify, limitBy, body, scope } = parts;
  if (limitBy.length > 0 || qualify !== null || isShareOfAllRows(compiler, select.limit, scope))
    return withInnerQuery(compiler, parts);
  if (select.distinct && parts.distinctOn.length === 0) rejectUnselected(parts);
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
  const limit = limitSql(compiler, select.limit, order.length > 0, scope);
  return sql`select ${distinct}${commaList(selected(outputs))}${body}${sorted}${limit}`;
}

/** @throws DialectError for DISTINCT with sort keys that are not selected: equal rows may have different ones */
function rejectUnselected({ outputs, order, limitBy, scope: { statement } }: SelectParts): void {
  const identities = new Set(outputs.map(({ value }) => identityOf(value)));
  const isUnselected = ({ value }: Output): boolean => !identities.has(identityOf(value));
  const [sorted, grouped] = [order.find(isUnselected), limitBy.find(isUnselected)];
  if (sorted !== undefined)
    throw statement.error('With DISTINCT, ORDER BY can use only columns of SELECT.', sorted.node);
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
