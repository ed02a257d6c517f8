import { createHash } from 'node:crypto';
import { mergeFacts, type Value } from '../../resolve/value.ts';
import { commaList, ownText, sql, type Sql } from '../../sql.ts';

/** Shorter pieces are written again rather than computed in a query of their own. */
const repeatable = 60;

/**
 * SQL that uses values more than once: long ones are computed once, in a query of their own. The names in it come
 * from what it holds, so that equal expressions stay equal; a window function has to stay where it is.
 */
export function once(values: readonly Value[], body: (...pieces: readonly Sql[]) => Sql): Sql {
  const isShort = values.every((value) => value.sql.size <= repeatable);
  if (isShort || mergeFacts(values).window !== null) return body(...values.map((value) => value.sql));
  return onceOf(
    values.map((value) => value.sql),
    body,
  );
}

/** The same for pieces without a window function. */
export function onceOf(pieces: readonly Sql[], body: (...pieces: readonly Sql[]) => Sql): Sql {
  const key = pieces.map((piece) => piece.key).join('\0');
  const alias = ownText(`once_${createHash('md5').update(key).digest('hex').slice(0, 12)}`);
  const names = pieces.map((_, place) => ownText(`v${place}`));
  const selected = pieces.map((piece, place) => sql`${piece} as ${names[place] ?? sql``}`);
  const columns = names.map((name) => sql`${alias}.${name}`);
  return sql`(select ${body(...columns)} from (select ${commaList(selected)} offset 0) as ${alias})`;
}
