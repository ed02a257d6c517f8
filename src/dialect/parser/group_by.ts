import type { Expression, GroupBy, GroupingSet } from '../ast.ts';
import { item } from './aliases.ts';
import type { Cursor } from './cursor.ts';

/** GROUP BY with its modes, or null where it does not stand. */
export function optionalGroupBy(cursor: Cursor): GroupBy | null {
  const { start } = cursor.token;
  if (!cursor.takeWords('GROUP')) return null;
  cursor.expectWords('BY');
  const { mode, items } = grouping(cursor);
  const withTotals = cursor.takeWords('WITH', 'TOTALS');
  return cursor.node<GroupBy>(start, { kind: 'group_by', mode, items, withTotals });
}

function grouping(cursor: Cursor): Pick<GroupBy, 'mode' | 'items'> {
  const list = (): readonly Expression[] => cursor.list(() => item(cursor));
  if (cursor.takeWords('GROUPING', 'SETS'))
    return { mode: 'grouping_sets', items: cursor.bracketed(() => cursor.list(() => groupingSet(cursor))) };
  for (const [word, mode] of modes) {
    if (!cursor.atWords(word) || !cursor.atSymbol('(', 1)) continue;
    cursor.advance();
    return { mode, items: cursor.bracketed(list) };
  }
  if (cursor.takeWords('ALL')) return { mode: 'all', items: [] };
  const items = list();
  const behind = modes.find(([word]) => cursor.takeWords('WITH', word));
  return { mode: behind?.[1] ?? 'plain', items };
}

const modes = [
  ['ROLLUP', 'rollup'],
  ['CUBE', 'cube'],
] as const;

function groupingSet(cursor: Cursor): GroupingSet {
  const { start } = cursor.token;
  if (!cursor.takeSymbol('('))
    return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items: [item(cursor)] });
  const items = cursor.atSymbol(')') ? [] : cursor.list(() => item(cursor));
  cursor.expectSymbol(')');
  return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items });
}
