import { argument, type Emitter, piece } from '../../compile/functions/site.ts';
import { ownText, sql } from '../../sql.ts';
import { scalar } from '../../types.ts';

/** Bits beyond the 64th are gone; PostgreSQL would count places modulo 64. */
const shift =
  (operator: '<<' | '>>'): Emitter =>
  (site) => {
    const places = piece(site, 1);
    const nullable = site.values.some(({ type }) => type.nullable);
    return {
      sql: sql`(case when ${places} between 0 and 63 then ${piece(site, 0)} ${ownText(operator)} (${places})::int4
        when ${places} is not null then 0 end)`,
      type: scalar('integer', nullable),
    };
  };

/** Arithmetic on the bits of integers. */
export const bitEmitters: Readonly<Record<string, Emitter>> = {
  bitShiftLeft: shift('<<'),
  bitShiftRight: shift('>>'),
  bitTest: (site) => ({
    sql: sql`((${piece(site, 0)} >> (least(greatest(${piece(site, 1)}, 0), 63))::int4) & 1)`,
    type: scalar(
      'integer',
      site.values.some(({ type }) => type.nullable),
    ),
  }),
  bitCount: (site) => ({
    sql: sql`(bit_count((${piece(site, 0)})::int8::bit(64)))::int8`,
    type: scalar('integer', argument(site, 0).type.nullable),
  }),
};
