import type { Value } from '../../resolve/value.ts';
import { sql, type Sql } from '../../sql.ts';
import { scalar, type Type } from '../../types.ts';

/** The item type of an array; the null type for other values. */
export const itemTypeOf = ({ type }: Value): Type =>
  type.kind === 'array' ? type.item : scalar('null', true);

/** A FROM item with the array's items: `each.v` as jsonb and `each.at`, the index from 1. */
export const unnestWithIndex = (array: Sql): Sql =>
  sql`jsonb_array_elements(${array}) with ordinality as each(v, at)`;
