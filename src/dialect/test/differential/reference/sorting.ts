import type { OrderItem } from '../../../ast.ts';
import { meaningOf } from './expressions.ts';
import type { Meaning, ReferenceScope, Row } from './scope.ts';
import { compare, type Value } from './values.ts';

/** An item of ORDER BY. */
export interface SortKey {
  readonly value: Meaning;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export const sortKeysOf = (items: readonly OrderItem[], scope: ReferenceScope): readonly SortKey[] =>
  items.map(({ expression, descending, nulls }) => ({
    value: meaningOf(expression, scope),
    descending,
    nullsFirst: nulls === 'first',
  }));

/** Nulls come last in both directions unless NULLS FIRST is given. */
export function compareSorted(
  a: Value,
  b: Value,
  { descending, nullsFirst }: Pick<SortKey, 'descending' | 'nullsFirst'>,
): number {
  if (a === null || b === null) return (Number(a === null) - Number(b === null)) * (nullsFirst ? -1 : 1);
  return compare(a, b) * (descending ? -1 : 1);
}

export function compareKeys(keys: readonly SortKey[], a: Row, b: Row): number {
  for (const key of keys) {
    const order = compareSorted(key.value.of(a), key.value.of(b), key);
    if (order !== 0) return order;
  }
  return 0;
}
