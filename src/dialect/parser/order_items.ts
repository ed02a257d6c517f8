import type { Expression, Fill, OrderItem } from '../ast.ts';
import { type Cursor } from './cursor.ts';

/** The items of ORDER BY, or an empty list if it is absent. */
export function optionalOrderBy(cursor: Cursor): readonly OrderItem[] {
  if (!cursor.acceptKeywords('ORDER')) return [];
  cursor.expectKeywords('BY');
  return cursor.list(() => orderItem(cursor));
}

/** `expression [ASC | DESC] [NULLS FIRST | LAST] [WITH FILL …]`. */
export function orderItem(cursor: Cursor): OrderItem {
  const { start } = cursor.token;
  const expression = cursor.grammar.expression(cursor);
  const descending = cursor.acceptKeywords('DESC') || cursor.acceptKeywords('DESCENDING');
  if (!descending && !cursor.acceptKeywords('ASC')) cursor.acceptKeywords('ASCENDING');
  const nulls = nullsOrder(cursor);
  if (cursor.peekKeywords('COLLATE'))
    throw cursor.error('COLLATE is not supported: strings are compared by their bytes.');
  const fill = optionalFill(cursor);
  return cursor.node<OrderItem>(start, { kind: 'order_item', expression, descending, nulls, fill });
}

function nullsOrder(cursor: Cursor): 'first' | 'last' | null {
  if (!cursor.acceptKeywords('NULLS')) return null;
  if (cursor.acceptKeywords('FIRST')) return 'first';
  if (cursor.acceptKeywords('LAST')) return 'last';
  throw cursor.unexpected('FIRST or LAST', ['FIRST', 'LAST']);
}

function optionalFill(cursor: Cursor): Fill | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('WITH', 'FILL')) return null;
  const bound = (word: string): Expression | null =>
    cursor.acceptKeywords(word) ? cursor.grammar.expression(cursor) : null;
  return cursor.node<Fill>(start, {
    kind: 'fill',
    from: bound('FROM'),
    to: bound('TO'),
    step: bound('STEP'),
  });
}
