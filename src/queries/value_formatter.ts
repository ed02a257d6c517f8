import { zoneOf, type Type } from '../dialect/types.ts';
import { timeFormatter } from './time_formatter.ts';

/** Converts a column value from PostgreSQL's text to JSON. */
export type ValueFormatter = (text: string | null) => unknown;

/** Formats values of a type. Times, also nested ones, have the offset of their own zone, else the project's. */
export function valueFormatter(type: Type, timezone: string): ValueFormatter {
  const format = formatterOf(type, timezone);
  return (text) => (text === null ? null : format(text));
}

function formatterOf(type: Type, timezone: string): (text: string) => unknown {
  switch (type.kind) {
    case 'integer':
    case 'decimal':
    case 'float':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'datetime':
      return timeFormatter(zoneOf(type) ?? timezone);
    case 'json':
      return (text) => JSON.parse(text) as unknown;
    case 'array':
    case 'tuple':
    case 'map': {
      const formatNested = nestedFormatter(type, timezone);
      return formatNested === null
        ? (text) => JSON.parse(text) as unknown
        : (text) => formatNested(JSON.parse(text));
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
