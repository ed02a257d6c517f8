import { IANAZone } from 'luxon';
import { bind, Sql } from './sql.ts';

/** Types without elements. */
export type ScalarKind =
  | 'string'
  | 'integer'
  | 'float'
  | 'decimal'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'uuid'
  | 'interval'
  | 'json'
  | 'null';

/** Who has a property: an event, a person, or a group of one type. */
export type PropertyScope = 'event' | 'person' | `group_${0 | 1 | 2 | 3 | 4}`;

/** A property of the project's rows. */
export interface Property {
  readonly scope: PropertyScope;
  readonly name: string;
}

interface Nullability {
  /** Whether a value may be null. */
  readonly nullable: boolean;
  /** Whether it is null only in rows that an outer join did not match. ClickHouse has the default of the type there. */
  readonly unmatched?: boolean;
}

/**
 * What an interval consists of: days and months, which keep the time of day across clock changes, or elapsed time. Absent
 * if only its value tells.
 */
export type IntervalUnit = 'calendar' | 'clock';

/**
 * The type of an expression. Arrays, tuples and maps are jsonb in PostgreSQL; the others are scalar types. `zone` is
 * the time zone that a datetime is displayed in if the query names one, as in toTimeZone(x, 'UTC'); otherwise it is
 * the project's.
 */
export type Type =
  | ({
      readonly kind: ScalarKind;
      readonly zone?: string;
      readonly intervalUnit?: IntervalUnit;
      /** The property whose text it is, while its type may be inferred. */
      readonly property?: Property;
    } & Nullability)
  | ({ readonly kind: 'array'; readonly item: Type } & Nullability)
  | ({
      readonly kind: 'tuple';
      readonly items: readonly Type[];
      readonly names: readonly string[];
    } & Nullability)
  | ({ readonly kind: 'map'; readonly value: Type } & Nullability);

export type Kind = Type['kind'];

export const scalarType = (kind: ScalarKind, nullable = false): Type => ({ kind, nullable });
/** A datetime in a named time zone, or in the project's. */
export const timeIn = (zone: string | undefined, nullable: boolean): Type =>
  zone === undefined ? scalarType('datetime', nullable) : { kind: 'datetime', zone, nullable };
/** An interval of one unit, or of any. */
export const intervalOfUnit = (unit: IntervalUnit | undefined, nullable = false): Type =>
  unit === undefined ? scalarType('interval', nullable) : { kind: 'interval', intervalUnit: unit, nullable };
export const intervalUnitOf = (type: Type): IntervalUnit | undefined =>
  'intervalUnit' in type ? type.intervalUnit : undefined;
export const propertyOf = (type: Type): Property | undefined =>
  'property' in type ? type.property : undefined;
export const zoneOf = (type: Type): string | undefined => ('zone' in type ? type.zone : undefined);
export const arrayOf = (item: Type): Type => ({ kind: 'array', item, nullable: false });
export const tupleOf = (items: readonly Type[], names: readonly string[] = []): Type => ({
  kind: 'tuple',
  items,
  names,
  nullable: false,
});
export const mapOf = (value: Type): Type => ({ kind: 'map', value, nullable: false });

export const withNull = (type: Type, nullable = true): Type =>
  type.nullable === nullable ? type : { ...type, nullable };

/** A type that an outer join makes nullable. */
export const whereUnmatched = (type: Type): Type =>
  type.nullable ? type : { ...type, nullable: true, unmatched: true };

/** A type whose null may mean something else than that an outer join found no row. */
export const withoutUnmatched = (type: Type): Type => {
  if (type.kind === 'array' && type.item.unmatched === true)
    return withoutUnmatched({ ...type, item: withoutUnmatched(type.item) });
  if (type.unmatched !== true) return type;
  const { unmatched: _, ...matched } = type;
  return matched;
};

/** Whether null means that an outer join found no row. */
export const isUnmatched = ({ nullable, unmatched }: Type): boolean => nullable && unmatched === true;

export const isComposite = (type: Type): boolean =>
  type.kind === 'array' || type.kind === 'tuple' || type.kind === 'map';

export const isNumber = (type: Type): boolean =>
  type.kind === 'integer' || type.kind === 'float' || type.kind === 'decimal';

const scalarNames: Readonly<Record<ScalarKind, string>> = {
  string: 'String',
  integer: 'Int64',
  float: 'Float64',
  decimal: 'Decimal',
  boolean: 'Bool',
  date: 'Date',
  datetime: 'DateTime64(6)',
  uuid: 'UUID',
  interval: 'Interval',
  json: 'JSON',
  null: 'Nothing',
};

/** The ClickHouse name of a type, such as `Nullable(String)` or `Array(Int64)`. */
export function nameOfType(type: Type, timezone: string | null = null): string {
  switch (type.kind) {
    case 'array':
      return `Array(${nameOfType(type.item, timezone)})`;
    case 'tuple':
      return `Tuple(${type.items.map((item, index) => `${nameOf(type.names[index])}${nameOfType(item, timezone)}`).join(', ')})`;
    case 'map':
      return `Map(String, ${nameOfType(type.value, timezone)})`;
    case 'datetime': {
      const zone = type.zone ?? timezone;
      const name = zone === null ? scalarNames.datetime : `DateTime64(6, '${zone}')`;
      return type.nullable ? `Nullable(${name})` : name;
    }
    default:
      return type.nullable ? `Nullable(${scalarNames[type.kind]})` : scalarNames[type.kind];
  }
}

const nameOf = (name: string | undefined): string => (name === undefined ? '' : `${name} `);

const numberRank: readonly Kind[] = ['integer', 'decimal', 'float'];

/** The type that both types convert to without losing meaning, or null if there is none. */
export function commonType(first: Type, second: Type): Type | null {
  const nullable = first.nullable || second.nullable;
  if (first.kind === 'null') return withNull(second);
  if (second.kind === 'null') return withNull(first);
  if (isNumber(first) && isNumber(second)) {
    const kind = numberRank.indexOf(first.kind) > numberRank.indexOf(second.kind) ? first : second;
    return withNull(kind, nullable);
  }
  if (first.kind === 'array' && second.kind === 'array') {
    const item = commonType(first.item, second.item);
    return item === null ? null : withNull(arrayOf(item), nullable);
  }
  if (first.kind === 'tuple' && second.kind === 'tuple') return commonTuple(first, second, nullable);
  if (first.kind === 'map' && second.kind === 'map') {
    const value = commonType(first.value, second.value);
    return value === null ? null : withNull(mapOf(value), nullable);
  }
  if (first.kind === 'interval' && second.kind === 'interval') return commonInterval(first, second, nullable);
  if (first.kind === second.kind) return withNull(first, nullable);
  const kinds = [first.kind, second.kind];
  if (kinds.includes('date') && kinds.includes('datetime'))
    return timeIn(zoneOf(first) ?? zoneOf(second), nullable);
  if (kinds.includes('json') && kinds.includes('string')) return scalarType('string', nullable);
  if (kinds.includes('boolean') && kinds.includes('integer')) return scalarType('integer', nullable);
  if (kinds.includes('boolean') && kinds.includes('float')) return scalarType('float', nullable);
  return null;
}

function commonInterval(first: Type, second: Type, nullable: boolean): Type {
  const unit = intervalUnitOf(first);
  return intervalOfUnit(unit === intervalUnitOf(second) ? unit : undefined, nullable);
}

function commonTuple(
  first: Extract<Type, { kind: 'tuple' }>,
  second: Extract<Type, { kind: 'tuple' }>,
  nullable: boolean,
): Type | null {
  if (first.items.length !== second.items.length) return null;
  const items: Type[] = [];
  for (const [index, item] of first.items.entries()) {
    const other = second.items[index];
    const common = other === undefined ? null : commonType(item, other);
    if (common === null) return null;
    items.push(common);
  }
  return withNull(tupleOf(items, first.names), nullable);
}

/** The common type of several types; the `null` type for an empty list, null if there is none. */
export function commonTypeOf(types: readonly Type[]): Type | null {
  let common: Type | null = scalarType('null', true);
  for (const [index, type] of types.entries()) {
    if (common === null) return null;
    common = index === 0 ? type : commonType(common, type);
  }
  return common;
}

const utcNames = new Set(['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT']);

/** A time zone: the bound parameter of its name. */
export class TimeZone extends Sql {
  readonly name: string;

  constructor(name: string) {
    super(bind(name, 'text').parts);
    this.name = name;
  }

  /** Whether no clock change ever repeats or skips a local time, and units have fixed lengths. */
  get isUtc(): boolean {
    return utcNames.has(this.name);
  }
}

/** The three-letter names that Node.js and PostgreSQL agree on. CST, for example, has no DST in PostgreSQL. */
const shortNames = new Set([
  'UTC',
  'UCT',
  'GMT',
  'CET',
  'EET',
  'MET',
  'WET',
  'EST',
  'MST',
  'HST',
  'PRC',
  'ROC',
  'ROK',
]);

/**
 * Whether a name is an IANA time zone. Offsets such as +05:00 are rejected: Node.js and PostgreSQL read them with
 * opposite signs.
 */
export const isTimeZone = (name: string): boolean =>
  IANAZone.isValidZone(name) &&
  !/^[+-]/.test(name) &&
  (name.length !== 3 || shortNames.has(name.toUpperCase()));
