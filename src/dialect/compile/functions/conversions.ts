import { bind, commaList, sql } from '../../sql.ts';
import { nameOfType, scalar, type ScalarKind, withNull } from '../../types.ts';
import { castValue } from '../casts.ts';
import { defaultOf, toJson } from '../json_values.ts';
import { toText } from '../to_text.ts';
import { argument, type Emitter, nodeAt, optionalPiece, piece } from './site.ts';

const to =
  (kind: ScalarKind): Emitter =>
  (site) => {
    const value = argument(site, 0);
    // A fraction is lost by toInt of a number, as it is of the engine that analysts know.
    return castValue(value, scalar(kind), nodeAt(site, 0), site.statement);
  };

const orZero =
  (kind: ScalarKind): Emitter =>
  (site) => {
    const cast = castValue(argument(site, 0), scalar(kind), nodeAt(site, 0), site.statement);
    const plain = withNull(cast.type, false);
    const other = optionalPiece(site, 1) ?? defaultOf(plain);
    return { sql: sql`coalesce(${cast.sql}, ${other})`, type: plain };
  };

const hex: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  return {
    sql:
      type.kind === 'integer'
        ? sql`upper(to_hex(${value}))`
        : sql`upper(encode(convert_to(${toText(argument(site, 0), site.statement)}, 'UTF8'), 'hex'))`,
    type: scalar('string', type.nullable),
  };
};

const hash: Emitter = (site) => ({
  sql: sql`hashtextextended(concat_ws(chr(31), ${commaList(site.values.map((value) => toText(value, site.statement)))}), 0)`,
  type: scalar('integer'),
});

const readableSize: Emitter = (site) => {
  const value = sql`(${piece(site, 0)})::float8`;
  const power = sql`least(6, greatest(0, floor(ln(greatest(abs(${value}), 1)) / ln(1024::float8))))::int4`;
  return sql`(to_char(${value} / 1024::float8 ^ ${power}, 'FM999999999990.00') || ' ' || (array['B','KiB','MiB','GiB','TiB','PiB','EiB'])[${power} + 1])`;
};

const readableQuantity: Emitter = (site) => {
  const value = sql`(${piece(site, 0)})::float8`;
  const power = sql`least(5, greatest(0, floor(log(greatest(abs(${value}), 1)) / 3)))::int4`;
  return sql`(to_char(${value} / 1000::float8 ^ ${power}, 'FM999999999990.00') || (array['',' thousand',' million',' billion',' trillion',' quadrillion'])[${power} + 1])`;
};

const text: Emitter = (site) => ({
  sql: toText(argument(site, 0), site.statement),
  type: scalar('string', argument(site, 0).type.nullable),
});

export const conversionEmitters: Readonly<Record<string, Emitter>> = {
  toInt: to('integer'),
  toFloat: to('float'),
  toBool: to('boolean'),
  toUUID: to('uuid'),
  toDecimal: (site) => {
    const cast = castValue(argument(site, 0), scalar('decimal'), nodeAt(site, 0), site.statement);
    return { sql: sql`round(${cast.sql}, (${piece(site, 1)})::int4)`, type: cast.type };
  },
  toString: text,
  toIntOrZero: orZero('integer'),
  toFloatOrZero: orZero('float'),
  toFloatOrDefault: orZero('float'),
  toJSONString: (site) => {
    const { type, sql: value } = argument(site, 0);
    return { sql: sql`(${toJson(value, type)})::text`, type: scalar('string', type.nullable) };
  },
  toTypeName: (site) => ({
    sql: bind(nameOfType(argument(site, 0).type, site.statement.project.timezone), 'text'),
    type: scalar('string'),
  }),
  hex,
  unhex: (site) => sql`convert_from(decode(${piece(site, 0)}, 'hex'), 'UTF8')`,
  cityHash64: hash,
  formatReadableSize: readableSize,
  formatReadableQuantity: readableQuantity,
};
