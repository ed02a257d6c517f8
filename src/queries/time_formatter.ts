import { DateTime } from 'luxon';

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
export function timeFormatter(timezone: string): (text: string) => string {
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
