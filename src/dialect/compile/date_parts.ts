import { rawSql, sql, type Sql } from '../sql.ts';

const part =
  (field: string) =>
  (local: Sql): Sql =>
    sql`(extract(${rawSql(field)} from ${local}))::int8`;

const seconds =
  (factor: string) =>
  (local: Sql): Sql =>
    sql`(floor(extract(second from ${local}) * ${rawSql(factor)}))::int8`;

/** Date parts by unit, computed from a local time without time zone. */
export const dateParts: Readonly<Partial<Record<string, (local: Sql) => Sql>>> = {
  year: part('year'),
  quarter: part('quarter'),
  month: part('month'),
  week: part('week'),
  day: part('day'),
  hour: part('hour'),
  minute: part('minute'),
  second: (local) => sql`(floor(extract(second from ${local})))::int8`,
  millisecond: seconds('1000'),
  microsecond: seconds('1000000'),
};
