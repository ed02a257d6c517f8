import { argument, type Emitter, argumentSql } from '../../compile/functions/call_site.ts';
import { rawSql, sql } from '../../sql.ts';
import { clamped } from './bounds.ts';
import { scalar } from '../../types.ts';

/** Shifts by 64 or more yield 0; PostgreSQL would shift modulo 64. */
const shift =
  (operator: '<<' | '>>'): Emitter =>
  (site) => {
    const bits = argumentSql(site, 1);
    const nullable = site.values.some(({ type }) => type.nullable);
    return {
      sql: sql`(case when ${bits} between 0 and 63 then ${argumentSql(site, 0)} ${rawSql(operator)} (${bits})::int4
        when ${bits} is not null then 0 end)`,
      type: scalar('integer', nullable),
    };
  };

/** Bit functions of integers. */
export const bitEmitters = {
  bitShiftLeft: shift('<<'),
  bitShiftRight: shift('>>'),
  bitTest: (site) => ({
    sql: sql`((${argumentSql(site, 0)} >> ${clamped(argumentSql(site, 1), sql`0`, sql`63`)}) & 1)`,
    type: scalar(
      'integer',
      site.values.some(({ type }) => type.nullable),
    ),
  }),
  bitCount: (site) => ({
    sql: sql`(bit_count((${argumentSql(site, 0)})::int8::bit(64)))::int8`,
    type: scalar('integer', argument(site, 0).type.nullable),
  }),
} satisfies Readonly<Record<string, Emitter>>;
