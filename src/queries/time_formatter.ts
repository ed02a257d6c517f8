import { DateTime } from 'luxon';

/** As PostgreSQL writes times: in columns, and in JSON. */
const utcTime = /^(\d{4,}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:\+00|Z)$/;

const quarterMs = 15 * 60_000;
/** From where on a year may have five digits in some zone. */
const longYearsSince = Date.UTC(9999, 11, 30);

interface Offset {
  readonly ms: number;
  readonly text: string;
}

/**
 * Shows moments in a zone: `2026-11-21 16:00:00.5+00` as `2026-11-21T17:00:00.500000+01:00`; what is no day of our era
 * stays as it is. An answer may hold a million of them, and the zone's rules cost 40 µs each, so the offset of a quarter
 * of an hour is looked up once.
 */
export function timeFormatter(timezone: string): (text: string) => string {
  const offsets = new Map<number, Offset | null>();
  /** Null where clocks are changed within the quarter. */
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
