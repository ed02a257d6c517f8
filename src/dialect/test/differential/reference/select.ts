import {
  type Expression,
  type GroupBy,
  type Limit,
  type LimitBy,
  type Query,
  type Select,
  walk,
} from '../../../ast.ts';
import { isAggregate } from './aggregates.ts';
import { conditionOf, meaningOf } from './expressions.ts';
import { sourceOf, withArrayJoin } from './from.ts';
import type { ReferenceResult } from './queries.ts';
import { expressionIdentity, type ReferenceScope, type ReferenceWorld, type Row } from './scope.ts';
import { compareSorted, sortKeysOf } from './sorting.ts';
import { withNull } from './types.ts';
import { AmbiguousResultError, identityOf, unsupported, type Value } from './values.ts';

/** A row of the result with what it is sorted and limited by. */
interface OutputRow {
  readonly values: readonly Value[];
  readonly sortValues: readonly Value[];
  readonly by: string;
}

export function selectRows(
  select: Select,
  world: ReferenceWorld,
  outerCtes: ReadonlyMap<string, Query>,
): ReferenceResult {
  const aliases = new Map<string, Expression>();
  const ctes = new Map(outerCtes);
  for (const cte of select.ctes)
    if (cte.kind === 'query_cte') ctes.set(cte.name.text, cte.query);
    else aliases.set(cte.name.text, cte.expression);
  for (const column of select.columns)
    if (column.kind === 'alias') aliases.set(column.name.text, column.expression);
  if (select.distinctOn.length > 0 || select.prewhere !== null)
    return unsupported('DISTINCT ON or PREWHERE.');
  const base: ReferenceScope = {
    world,
    ctes,
    columns: [],
    aliases,
    lambdas: new Map(),
    windows: select.windows,
    mayBeEmpty: false,
    inJoin: false,
  };
  const source = withArrayJoin(sourceOf(select.from, base), select.arrayJoin, base);
  const scope = { ...base, columns: source.columns };
  const where = select.where === null ? undefined : conditionOf(select.where, scope);
  const rows = source.rows.filter((row) => where === undefined || where.of(row) === true);
  const isGrouped =
    select.groupBy !== null ||
    select.having !== null ||
    select.columns.some(hasAggregate) ||
    select.orderBy.some(({ expression }) => hasAggregate(expression));
  const grouped = isGrouped ? groupRows(select.groupBy, rows, scope) : { scope, rows };
  const having = select.having === null ? undefined : conditionOf(select.having, grouped.scope);
  const stage = staged(grouped.rows.filter((row) => having === undefined || having.of(row) === true));
  const qualify = select.qualify === null ? undefined : conditionOf(select.qualify, grouped.scope);
  const kept = stage.filter((row) => qualify === undefined || qualify.of(row) === true);
  return outputOf(select, kept, grouped.scope);
}

/** Gives each row the rows that window functions see. */
function staged(rows: readonly Row[]): readonly Row[] {
  const stage: Row[] = [];
  for (const [index, row] of rows.entries()) stage.push({ ...row, stage, index });
  return stage;
}

function hasAggregate(expression: Expression): boolean {
  let found = false;
  walk(expression, {
    enter: (node) => {
      if (node.kind === 'subquery') return false;
      if (node.kind === 'call' && node.over === null && isAggregate(node.name.text)) found = true;
      return true;
    },
  });
  return found;
}

function groupRows(
  groupBy: GroupBy | null,
  rows: readonly Row[],
  scope: ReferenceScope,
): { readonly scope: ReferenceScope; readonly rows: readonly Row[] } {
  const items = (groupBy?.items ?? []).flatMap((item) =>
    item.kind === 'grouping_set' ? [...item.items] : [item],
  );
  const identities = items.map((item) => expressionIdentity(item, scope));
  const unique = [...new Set(identities)];
  const meanings = items
    .filter((_, index) => identities.indexOf(identities[index] ?? '') === index)
    .map((item) => meaningOf(item, scope));
  const sets = groupingSets(groupBy, unique, scope);
  const isPartial = sets.some((set) => set.length < unique.length);
  const isNested = groupBy?.mode === 'rollup' || groupBy?.mode === 'cube';
  if (isNested && unique.length < identities.length) return unsupported('A key twice in ROLLUP or CUBE.');
  if (isPartial && unique.some((identity) => !identity.includes('"column ')))
    return unsupported('A constant in a grouping set.');
  const groups = sets.flatMap((set) => {
    const keysOf = (row: Row): readonly Value[] =>
      meanings.map((meaning, index) => (set.includes(index) ? meaning.of(row) : null));
    const found = [...Map.groupBy(rows, (row) => identityOf(keysOf(row))).values()];
    // Without keys there is one group, even without rows.
    const all = found.length === 0 && set.length === 0 ? [[]] : found;
    return all.map((group) => {
      const [first] = group;
      const keys = first === undefined ? unique.map(() => null) : keysOf(first);
      return { cells: new Map(), group: { rows: group, keys } };
    });
  });
  const keys = new Map(
    meanings.map(({ type }, index) => [
      unique[index] ?? '',
      { index, type: isPartial ? withNull(type) : type },
    ]),
  );
  return { scope: { ...scope, keys, mayBeEmpty: unique.length === 0 || isPartial }, rows: groups };
}

/** The sets of key indexes that rows are grouped by. */
function groupingSets(
  groupBy: GroupBy | null,
  identities: readonly string[],
  scope: ReferenceScope,
): readonly (readonly number[])[] {
  const all = identities.map((_, index) => index);
  if (groupBy === null) return [all];
  if (groupBy.withTotals) return unsupported('WITH TOTALS');
  switch (groupBy.mode) {
    case 'plain':
      return [all];
    case 'rollup':
      return [...all.keys(), all.length].map((length) => all.slice(0, length));
    case 'cube':
      return Array.from({ length: 2 ** all.length }, (_, bits) =>
        all.filter((index) => (bits >> index) % 2 === 1),
      );
    case 'grouping_sets':
      return groupBy.items.map((set) =>
        set.kind === 'grouping_set'
          ? [...new Set(set.items.map((item) => identities.indexOf(expressionIdentity(item, scope))))]
          : unsupported('A set without parentheses.'),
      );
    case 'all':
      return unsupported('GROUP BY ALL');
  }
}

function outputOf(select: Select, rows: readonly Row[], scope: ReferenceScope): ReferenceResult {
  const values = select.columns.map((column) => meaningOf(column, scope));
  const keys = sortKeysOf(select.orderBy, scope);
  const by = (select.limitBy?.by ?? []).map((item) => meaningOf(item, scope));
  const all = rows.map((row): OutputRow => ({
    values: values.map((value) => value.of(row)),
    sortValues: keys.map((key) => key.value.of(row)),
    by: identityOf(by.map((item) => item.of(row))),
  }));
  const order = (a: OutputRow, b: OutputRow): number => {
    for (const [index, key] of keys.entries()) {
      const sign = compareSorted(a.sortValues[index] ?? null, b.sortValues[index] ?? null, key);
      if (sign !== 0) return sign;
    }
    return 0;
  };
  const distinct = select.distinct ? withoutDuplicates(all, order) : all;
  const sorted = [...distinct].sort(order);
  const limited = limitRows(limitBy(sorted, select.limitBy, order), select.limit, order);
  return {
    columns: select.columns.map((column, index) => ({
      name: nameOf(column),
      type: values[index]?.type ?? unsupported('A column without a type.'),
    })),
    rows: limited.map((row) => row.values),
    ties: limited.map((row, index) => {
      const before = limited[index - 1];
      return before !== undefined && order(before, row) === 0;
    }),
  };
}

function nameOf(column: Expression): string {
  if (column.kind === 'alias') return column.name.text;
  return column.kind === 'field' ? (column.path.at(-1)?.text ?? '') : '';
}

/** Of equal rows, the first in the order of ORDER BY counts. @throws AmbiguousResultError if they differ in LIMIT BY */
function withoutDuplicates(rows: readonly OutputRow[], order: Order): readonly OutputRow[] {
  return [...Map.groupBy(rows, ({ values }) => identityOf(values)).values()].map((same) => {
    const [first = unsupported('An empty group.')] = [...same].sort(order);
    if (same.some((row) => row.by !== first.by)) throw new AmbiguousResultError('DISTINCT with LIMIT BY.');
    return first;
  });
}

const integerOf = (expression: Expression | null, missing: number): number =>
  expression === null
    ? missing
    : expression.kind === 'number'
      ? Number(expression.text)
      : unsupported('A computed limit.');

type Order = (a: OutputRow, b: OutputRow) => number;

function limitBy(rows: readonly OutputRow[], limit: LimitBy | null, order: Order): readonly OutputRow[] {
  if (limit === null) return rows;
  const kept = new Set(
    [...Map.groupBy(rows, (row) => row.by).values()].flatMap((group) => [
      ...cut(group, integerOf(limit.offset, 0), integerOf(limit.count, Infinity), order),
    ]),
  );
  return rows.filter((row) => kept.has(row));
}

function limitRows(rows: readonly OutputRow[], limit: Limit | null, order: Order): readonly OutputRow[] {
  if (limit === null) return rows;
  if (limit.percent) return unsupported('LIMIT PERCENT');
  const offset = integerOf(limit.offset, 0);
  let count = integerOf(limit.count, Infinity);
  if (limit.withTies) {
    let last = rows[offset + count - 1];
    while (last !== undefined && rows[offset + count] !== undefined) {
      const next = rows[offset + count];
      if (next === undefined || order(last, next) !== 0) break;
      last = next;
      count += 1;
    }
  }
  return cut(rows, offset, count, order);
}

/** @throws AmbiguousResultError if the bounds separate different rows with equal sort keys */
function cut(rows: readonly OutputRow[], offset: number, count: number, order: Order): readonly OutputRow[] {
  for (const bound of [offset, offset + count]) {
    const [before, after] = [rows[bound - 1], rows[bound]];
    if (before === undefined || after === undefined || order(before, after) !== 0) continue;
    const same = rows.filter((row) => order(row, after) === 0);
    if (new Set(same.map((row) => identityOf(row.values))).size > 1)
      throw new AmbiguousResultError('LIMIT between rows with equal sort keys.');
  }
  return rows.slice(offset, offset + count);
}
