import { DateTime } from 'luxon';
import type { Type } from '../dialect/types.ts';

/** A value of a row as PostgreSQL writes it, as JSON shows it. */
export type ValueReader = (text: string | null) => unknown;

/** How values of a type are shown; times with the offset of the project's zone. */
export function valueReader({ kind }: Type, timezone: string): ValueReader {
  const shown = readerOf(kind, timezone);
  return (text) => (text === null ? null : shown(text));
}

function readerOf(kind: Type['kind'], timezone: string): (text: string) => unknown {
  switch (kind) {
    case 'integer':
    case 'decimal':
    case 'float':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'datetime':
      return (text) => timeIn(text, timezone);
    case 'json':
    case 'array':
    case 'tuple':
    case 'map':
      return (text) => JSON.parse(text) as unknown;
    default:
      return (text) => text;
  }
}

const utcTime = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?\+00$/;

/** `2026-11-21 16:00:00.5+00` as `2026-11-21T17:00:00.500000+01:00`; what is no day of our era stays as it is. */
function timeIn(text: string, timezone: string): string {
  const [, day, clock, fraction] = utcTime.exec(text) ?? [];
  if (day === undefined || clock === undefined) return text;
  const time = DateTime.fromISO(`${day}T${clock}Z`, { zone: timezone });
  if (!time.isValid) return text;
  const offset = time.offset === 0 ? 'Z' : time.toFormat('ZZ');
  return `${time.toFormat("yyyy-MM-dd'T'HH:mm:ss")}${fraction === undefined ? '' : fraction.padEnd(7, '0')}${offset}`;
}
