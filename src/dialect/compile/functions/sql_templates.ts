import type { Value } from '../../resolve/value.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';

/** Fills the SQL template of a function with its arguments (`$1`, `$2`). */
export function fillTemplate(template: string, values: readonly Value[]): Sql {
  let filled = sql``;
  template.split(/\$(\d+)/).forEach((part, index) => {
    const value = index % 2 === 0 ? undefined : values[Number(part) - 1];
    filled = sql`${filled}${value?.sql ?? rawSql(part)}`;
  });
  return filled;
}
