import type { Expression, GroupBy, GroupingSet } from '../ast.ts';
import { item } from './aliases.ts';
import type { Cursor } from './cursor.ts';

/** GROUP BY with its modes, or null if it is absent. */
export function optionalGroupBy(cursor: Cursor): GroupBy | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('GROUP')) return null;
  cursor.expectKeywords('BY');
  const { mode, items } = grouping(cursor);
  const withTotals = cursor.acceptKeywords('WITH', 'TOTALS');
  return cursor.node<GroupBy>(start, { kind: 'group_by', mode, items, withTotals });
}

function grouping(cursor: Cursor): Pick<GroupBy, 'mode' | 'items'> {
  const list = (): readonly Expression[] => cursor.list(() => item(cursor));
  if (cursor.acceptKeywords('GROUPING', 'SETS'))
    return {
      mode: 'grouping_sets',
      items: cursor.parenthesized(() => cursor.list(() => groupingSet(cursor))),
    };
  for (const [word, mode] of modes) {
    if (!cursor.peekKeywords(word) || !cursor.peekSymbol('(', 1)) continue;
    cursor.advance();
    return { mode, items: cursor.parenthesized(list) };
  }
  if (cursor.acceptKeywords('ALL')) return { mode: 'all', items: [] };
  const items = list();
  const behind = modes.find(([word]) => cursor.acceptKeywords('WITH', word));
  return { mode: behind?.[1] ?? 'plain', items };
}

const modes = [
  ['ROLLUP', 'rollup'],
  ['CUBE', 'cube'],
] as const;

function groupingSet(cursor: Cursor): GroupingSet {
  const { start } = cursor.token;
  if (!cursor.acceptSymbol('('))
    return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items: [item(cursor)] });
  const items = cursor.peekSymbol(')') ? [] : cursor.list(() => item(cursor));
  cursor.expectSymbol(')');
  return cursor.node<GroupingSet>(start, { kind: 'grouping_set', items });
}
