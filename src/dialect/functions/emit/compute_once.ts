import { createHash } from 'node:crypto';
import { mergeTraits, type Value } from '../../resolve/value.ts';
import { commaList, rawSql, sql, type Sql } from '../../sql.ts';

/** Shorter fragments are repeated rather than computed in a subquery. */
const maxRepeatedSize = 60;

/**
 * SQL that uses values more than once. Long values are computed once in a subquery, whose alias is a hash of the
 * content, so that equal expressions stay equal. Window functions are repeated, because they cannot move.
 */
export function computeOnce(values: readonly Value[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const isShort = values.every((value) => value.sql.size <= maxRepeatedSize);
  if (isShort || mergeTraits(values).window !== null) return body(...values.map((value) => value.sql));
  return computeSqlOnce(
    values.map((value) => value.sql),
    body,
  );
}

/** The same for fragments without a window function. */
export function computeSqlOnce(fragments: readonly Sql[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const key = fragments.map((fragment) => fragment.key).join('\0');
  const alias = rawSql(`once_${createHash('md5').update(key).digest('hex').slice(0, 12)}`);
  const names = fragments.map((_, index) => rawSql(`v${index}`));
  const selected = fragments.map((fragment, index) => sql`${fragment} as ${names[index] ?? sql``}`);
  const columns = names.map((name) => sql`${alias}.${name}`);
  return sql`(select ${body(...columns)} from (select ${commaList(selected)} offset 0) as ${alias})`;
}
