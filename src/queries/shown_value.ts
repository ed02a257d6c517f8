import { zoneOf, type Type } from '../dialect/types.ts';
import { timeReader } from './shown_time.ts';

/** A value of a row as PostgreSQL writes it, as JSON shows it. */
export type ValueReader = (text: string | null) => unknown;

/** How values of a type are shown; times with the offset of their zone, else the project's, also inside of others. */
export function valueReader(type: Type, timezone: string): ValueReader {
  const shown = readerOf(type, timezone);
  return (text) => (text === null ? null : shown(text));
}

function readerOf(type: Type, timezone: string): (text: string) => unknown {
  switch (type.kind) {
    case 'integer':
    case 'decimal':
    case 'float':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'datetime':
      return timeReader(zoneOf(type) ?? timezone);
    case 'json':
      return (text) => JSON.parse(text) as unknown;
    case 'array':
    case 'tuple':
    case 'map': {
      const inside = insideReader(type, timezone);
      return inside === null ? (text) => JSON.parse(text) as unknown : (text) => inside(JSON.parse(text));
    }
    default:
      return (text) => text;
  }
}

type InsideReader = (value: unknown) => unknown;

/** How what JSON holds in the place of a type is shown; null where it is shown as it is, so that no copy is made. */
function insideReader(type: Type, timezone: string): InsideReader | null {
  switch (type.kind) {
    case 'datetime': {
      const shownTime = timeReader(zoneOf(type) ?? timezone);
      return (value) => (typeof value === 'string' ? shownTime(value) : value);
    }
    case 'array': {
      const item = insideReader(type.item, timezone);
      return item && ((value) => (Array.isArray(value) ? value.map(item) : value));
    }
    case 'tuple': {
      const items = type.items.map((item) => insideReader(item, timezone));
      if (items.every((item) => item === null)) return null;
      return (value) =>
        Array.isArray(value) ? value.map((one: unknown, index) => items[index]?.(one) ?? one) : value;
    }
    case 'map': {
      const ofValue = insideReader(type.value, timezone);
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
