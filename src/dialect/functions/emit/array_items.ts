import type { Value } from '../../resolve/value.ts';
import { sql, type Sql } from '../../sql.ts';
import { scalar, type Type } from '../../types.ts';

/** The type of an array's items; that of null for what is no array. */
export const itemTypeOf = ({ type }: Value): Type =>
  type.kind === 'array' ? type.item : scalar('null', true);

/** The items of an array in FROM: `each.v` as jsonb and `each.at`, from one. */
export const numbered = (array: Sql): Sql =>
  sql`jsonb_array_elements(${array}) with ordinality as each(v, at)`;
