import {
  type AggregateEmitter,
  type AggregateCallSite,
  argument,
} from '../../compile/functions/call_site.ts';
import { isComposite, withNull } from '../../types.ts';
import { sql, type Sql } from '../../sql.ts';

/** Skips nulls in the frame unless RESPECT NULLS is given; PostgreSQL has no IGNORE NULLS. */
function valueOf(
  site: AggregateCallSite,
  plain: Sql,
  pick: (values: Sql) => Sql,
): ReturnType<AggregateEmitter> {
  const value = argument(site, 0);
  const type = withNull(site.returnType);
  if (!value.type.nullable) return { sql: site.over(plain), type };
  if (site.node.nulls === 'respect') return { sql: site.over(plain), type };
  const element =
    isComposite(value.type) || value.type.kind === 'json' ? sql`(${value.sql})::jsonb` : value.sql;
  const values = site.over(sql`array_agg(${element})`, sql`${value.sql} is not null`);
  return { sql: pick(values), type };
}

const firstValue: AggregateEmitter = (site) =>
  valueOf(site, sql`first_value(${argument(site, 0).sql})`, (values) => sql`(${values})[1]`);

const lastValue: AggregateEmitter = (site) =>
  valueOf(
    site,
    sql`last_value(${argument(site, 0).sql})`,
    (values) => sql`(${values})[cardinality(${values})]`,
  );

/** First and last value of a window frame. */
export const frameValueEmitters = {
  first_value: firstValue,
  last_value: lastValue,
} satisfies Readonly<Record<string, AggregateEmitter>>;
