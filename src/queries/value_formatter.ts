import { DateTime } from 'luxon';
import { type Type, zoneOf } from '@exportd/dialect/types';
import { exactNumber, parseJson } from '../client/exact_numbers.ts';

/** Times as PostgreSQL writes them in columns and in JSON. */
const utcTime = /^(\d{4,}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:\+00|Z)$/;

const quarterMs = 15 * 60_000;
/** From here on, a year may have five digits in some zone. */
const longYearsSince = Date.UTC(9999, 11, 30);

interface Offset {
  readonly ms: number;
  readonly text: string;
}

/**
 * Formats times in a zone: `2026-11-21 16:00:00.5+00` becomes `2026-11-21T17:00:00.500000+01:00`. Dates BC and infinite
 * times are returned unchanged. A result may contain a million times, and a zone lookup costs 40 µs, so the offset of
 * each quarter of an hour is looked up once.
 */
function timeFormatter(timezone: string): (text: string) => string {
  const offsets = new Map<number, Offset | null>();
  /** Null if the offset changes within the quarter. */
  const offsetIn = (quarter: number): Offset | null => {
    const known = offsets.get(quarter);
    if (known !== undefined) return known;
    const [time, next] = [quarter, quarter + 1].map((at) =>
      DateTime.fromMillis(at * quarterMs, { zone: timezone }),
    );
    const offset =
      time === undefined || time.offset !== next?.offset
        ? null
        : { ms: Math.round(time.offset * 60_000), text: formatOffset(time) };
    offsets.set(quarter, offset);
    return offset;
  };
  return (text) => {
    const [, day, clock, fraction] = utcTime.exec(text) ?? [];
    if (day === undefined || clock === undefined) return text;
    const formattedFraction = fraction === undefined ? '' : fraction.padEnd(7, '0');
    const moment = Date.parse(`${day}T${clock}Z`);
    const offset = moment < longYearsSince ? offsetIn(Math.floor(moment / quarterMs)) : null;
    if (offset !== null)
      return `${new Date(moment + offset.ms).toISOString().slice(0, 19)}${formattedFraction}${offset.text}`;
    const time = DateTime.fromISO(`${day}T${clock}Z`, { zone: timezone });
    if (!time.isValid) return text;
    return `${time.toFormat("yyyy-MM-dd'T'HH:mm:ss")}${formattedFraction}${formatOffset(time)}`;
  };
}

const formatOffset = (time: DateTime): string => (time.offset === 0 ? 'Z' : time.toFormat('ZZ'));

/** Converts a column value from PostgreSQL's text to JSON. */
type ValueFormatter = (text: string | null) => unknown;

/** Formats values of a type. Times, also nested ones, have the offset of their own zone, else the project's. */
export function valueFormatter(type: Type, timezone: string): ValueFormatter {
  const format = formatterOf(type, timezone);
  return (text) => (text === null ? null : format(text));
}

function formatterOf(type: Type, timezone: string): (text: string) => unknown {
  switch (type.kind) {
    case 'integer':
    case 'decimal':
      return exactNumber;
    case 'float':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'datetime':
      return timeFormatter(zoneOf(type) ?? timezone);
    case 'json':
      return parseJson;
    case 'array':
    case 'tuple':
    case 'map': {
      const formatNested = nestedFormatter(type, timezone);
      return formatNested === null ? parseJson : (text) => formatNested(parseJson(text));
    }
    default:
      return (text) => text;
  }
}

type NestedFormatter = (value: unknown) => unknown;

/** Formats a parsed JSON value of a type; null if the value stays unchanged, so that no copy is made. */
function nestedFormatter(type: Type, timezone: string): NestedFormatter | null {
  switch (type.kind) {
    case 'datetime': {
      const formatTime = timeFormatter(zoneOf(type) ?? timezone);
      return (value) => (typeof value === 'string' ? formatTime(value) : value);
    }
    case 'array': {
      const item = nestedFormatter(type.item, timezone);
      return item && ((value) => (Array.isArray(value) ? value.map(item) : value));
    }
    case 'tuple': {
      const items = type.items.map((item) => nestedFormatter(item, timezone));
      if (items.every((item) => item === null)) return null;
      return (value) =>
        Array.isArray(value) ? value.map((one: unknown, index) => items[index]?.(one) ?? one) : value;
    }
    case 'map': {
      const ofValue = nestedFormatter(type.value, timezone);
      return (
        ofValue &&
        ((value) =>
          typeof value === 'object' && value !== null
            ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, ofValue(one)]))
            : value)
      );
    }
    default:
      return null;
  }
}
