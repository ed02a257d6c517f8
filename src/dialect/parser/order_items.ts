import type { Expression, Fill, OrderItem } from '../ast.ts';
import { type Cursor } from './cursor.ts';

/** ORDER BY with its items, or an empty list where it does not stand. */
export function optionalOrderBy(cursor: Cursor): readonly OrderItem[] {
  if (!cursor.takeWords('ORDER')) return [];
  cursor.expectWords('BY');
  return cursor.list(() => orderItem(cursor));
}

/** `expression [ASC | DESC] [NULLS FIRST | LAST] [WITH FILL …]`. */
export function orderItem(cursor: Cursor): OrderItem {
  const { start } = cursor.token;
  const expression = cursor.grammar.expression(cursor);
  const descending = cursor.takeWords('DESC') || cursor.takeWords('DESCENDING');
  if (!descending && !cursor.takeWords('ASC')) cursor.takeWords('ASCENDING');
  const nulls = nullsPlace(cursor);
  if (cursor.atWords('COLLATE'))
    throw cursor.error('COLLATE is not supported; texts are compared by their bytes.');
  const fill = optionalFill(cursor);
  return cursor.node<OrderItem>(start, { kind: 'order_item', expression, descending, nulls, fill });
}

function nullsPlace(cursor: Cursor): 'first' | 'last' | null {
  if (!cursor.takeWords('NULLS')) return null;
  if (cursor.takeWords('FIRST')) return 'first';
  if (cursor.takeWords('LAST')) return 'last';
  throw cursor.unexpected('FIRST or LAST', ['FIRST', 'LAST']);
}

function optionalFill(cursor: Cursor): Fill | null {
  const { start } = cursor.token;
  if (!cursor.takeWords('WITH', 'FILL')) return null;
  const bound = (word: string): Expression | null =>
    cursor.takeWords(word) ? cursor.grammar.expression(cursor) : null;
  return cursor.node<Fill>(start, {
    kind: 'fill',
    from: bound('FROM'),
    to: bound('TO'),
    step: bound('STEP'),
  });
}
