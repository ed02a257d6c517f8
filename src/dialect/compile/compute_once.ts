import { mergeTraits, type Value } from '../resolve/value.ts';
import { commaList, generatedName, rawSql, sql, type Sql } from '../sql.ts';

/** Shorter fragments are repeated rather than computed in a subquery, which costs more than they do. */
const maxRepeatedLength = 60;

/**
 * SQL that uses values more than once. Long values are computed once in a subquery. Window functions are repeated,
 * because they cannot move.
 */
export function computeOnce(values: readonly Value[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const fragments = values.map((value) => value.sql);
  const isRepeated =
    fragments.every(({ length }) => length <= maxRepeatedLength) || mergeTraits(values).window !== null;
  return isRepeated ? body(...fragments) : computeSqlOnce(fragments, body);
}

/** The same for fragments without a window function. */
export function computeSqlOnce(fragments: readonly Sql[], body: (...fragments: readonly Sql[]) => Sql): Sql {
  const alias = generatedName('once');
  const names = fragments.map((_, index) => rawSql(`v${index}`));
  const selected = fragments.map((fragment, index) => sql`${fragment} as ${names[index] ?? sql``}`);
  const columns = names.map((name) => sql`${alias}.${name}`);
  return sql`(select ${body(...columns)} from (select ${commaList(selected)} offset 0) as ${alias})`;
}
