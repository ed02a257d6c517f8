import type { Value } from '../../resolve/value.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';

/** The text of a function's definition with the arguments in the places of `$1`, `$2`. */
export function fillTemplate(template: string, values: readonly Value[]): Sql {
  let filled = sql``;
  template.split(/\$(\d+)/).forEach((part, index) => {
    const value = index % 2 === 0 ? undefined : values[Number(part) - 1];
    filled = sql`${filled}${value?.sql ?? rawSql(part)}`;
  });
  return filled;
}
