import { createHash } from 'node:crypto';
import { mergeTraits, type Value } from '../../resolve/value.ts';
import { commaList, rawSql, sql, type Sql } from '../../sql.ts';

/** Shorter pieces are written again rather than computed in a query of their own. */
const maxRepeatedSize = 60;

/**
 * SQL that uses values more than once: long ones are computed once, in a query of their own. The names in it come
 * from what it holds, so that equal expressions stay equal; a window function has to stay where it is.
 */
export function once(values: readonly Value[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const isShort = values.every((value) => value.sql.size <= maxRepeatedSize);
  if (isShort || mergeTraits(values).window !== null) return body(...values.map((value) => value.sql));
  return onceOf(
    values.map((value) => value.sql),
    body,
  );
}

/** The same for pieces without a window function. */
export function onceOf(fragments: readonly Sql[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const key = fragments.map((fragment) => fragment.key).join('\0');
  const alias = rawSql(`once_${createHash('md5').update(key).digest('hex').slice(0, 12)}`);
  const names = fragments.map((_, index) => rawSql(`v${index}`));
  const selected = fragments.map((fragment, index) => sql`${fragment} as ${names[index] ?? sql``}`);
  const columns = names.map((name) => sql`${alias}.${name}`);
  return sql`(select ${body(...columns)} from (select ${commaList(selected)} offset 0) as ${alias})`;
}
