import type { Expression, GroupBy, Select } from '../ast.ts';
import type { Grouping, Scope } from '../resolve/scope.ts';
import { commaList, rawSql, sql, type Sql } from '../sql.ts';
import type { Value } from '../resolve/value.ts';
import type { Compiler } from './compiler.ts';
import { groupByAllKeys } from './group_by_all.ts';
import { resolveOrdinal } from './select_items.ts';

/** The GROUP BY clause; adds its keys to `grouping`. @throws DialectError */
export function groupSql(
  compiler: Compiler,
  groupBy: GroupBy,
  select: Select,
  rows: Scope,
  grouping: Grouping,
): Sql {
  const scope: Scope = { ...rows, context: 'GROUP BY' };
  const isPlain = groupBy.mode === 'plain' || groupBy.mode === 'all';
  if (groupBy.withTotals && !isPlain)
    throw scope.statement.error(
      'WITH TOTALS cannot be combined with ROLLUP, CUBE or GROUPING SETS.',
      groupBy,
      'Remove it: ROLLUP(…) already returns a row for all groups.',
    );
  const positions = (items: readonly Expression[]): Sql =>
    commaList(
      items
        .map((item) => resolveOrdinal(item, select, scope))
        .flatMap((item) => (item.kind === 'tuple' ? item.items : [item]))
        .map((item) => {
          const value = compiler.value(item, scope);
          if (value.traits.window !== null)
            throw scope.statement.error('A window function is not allowed in GROUP BY.', item);
          return position(value);
        }),
    );
  const position = (value: Value): Sql => {
    grouping.addKey(value, !isPlain);
    return rawSql(String(grouping.positionOf(value)));
  };
  const plain = groupBy.items.flatMap((item) => (item.kind === 'grouping_set' ? [] : [item]));
  if (hasEmptySet(groupBy)) grouping.addEmptySet();
  switch (groupBy.mode) {
    case 'all': {
      const keys = groupByAllKeys(compiler, select, rows);
      return keys.length === 0 ? sql`` : sql` group by ${commaList(keys.map(position))}`;
    }
    case 'plain':
      return sql` group by ${positions(plain)}`;
    case 'rollup':
      return sql` group by rollup(${positions(plain)})`;
    case 'cube':
      return sql` group by cube(${positions(plain)})`;
    case 'grouping_sets': {
      const sets = groupBy.items.map((item) =>
        item.kind === 'grouping_set' ? sql`(${positions(item.items)})` : sql`(${positions([item])})`,
      );
      return sql` group by grouping sets (${commaList(sets)})`;
    }
  }
}

const hasEmptySet = ({ mode, items }: GroupBy): boolean =>
  mode === 'rollup' ||
  mode === 'cube' ||
  items.some((item) => item.kind === 'grouping_set' && item.items.length === 0);
