const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Bytes in powers of 1,000 with three digits: `12.3 MB`. A dash without a value. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '–';
  let amount = bytes;
  let unit = 0;
  while (amount >= 999.5 && unit < byteUnits.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : amount >= 10 ? 1 : 2;
  return `${amount.toFixed(digits)} ${byteUnits[unit] ?? ''}`;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** A number with separators: `1,234,567`. A dash without a value. */
export const formatCount = (count: number | null | undefined): string =>
  count === null || count === undefined ? '–' : whole.format(count);

/** A number in little space: `1.2M`. A dash without a value. */
export const formatShortCount = (count: number | null | undefined): string =>
  count === null || count === undefined ? '–' : compact.format(count);

const decimal = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });

/** A number with separators and at most two decimals, in little space from a million: `1,234.57`, `1.2M`. */
export const formatNumber = (value: number): string =>
  Math.abs(value) >= 1_000_000 ? compact.format(value) : decimal.format(value);

/** `1 row`, `2 rows`. */
export const formatQuantity = (count: number, unit: string): string =>
  `${whole.format(count)} ${unit}${count === 1 ? '' : 's'}`;

const durationUnits: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** Seconds in at most two units: `2 h 5 min`, `45 s`, `120 ms`. A dash without a value. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds < 0) return `−${formatDuration(-seconds)}`;
  if (seconds > 0 && seconds < 0.9995) return `${Math.max(1, Math.round(seconds * 1_000))} ms`;
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [name, length] of durationUnits) {
    const amount = Math.floor(rest / length);
    rest -= amount * length;
    if (amount > 0) parts.push(`${amount} ${name}`);
    // Two adjacent units say enough: `2 d` rather than `2 d 5 s`.
    else if (parts.length === 1) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}

/** A time as clocks of a time zone show it. Each part has its usual number of digits. */
interface LocalTime {
  readonly year: string;
  readonly month: string;
  readonly day: string;
  readonly hour: string;
  readonly minute: string;
  readonly second: string;
}

const msOfClocks = ({ year, month, day, hour, minute, second }: LocalTime): number =>
  Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);

/**
 * The moment at which clocks of a time zone show a time, the value of a `datetime-local` field, as ISO 8601. The first of two
 * such moments; a time that clocks skip is moved forward. Undefined for what is no time.
 */
export function momentOfClocks(time: string, timezone: string): string | undefined {
  const wanted = Date.parse(`${time}Z`);
  if (Number.isNaN(wanted)) return undefined;
  // The offsets before and after a change of clocks nearby.
  const dayMs = 86_400_000;
  const moments = [wanted - dayMs, wanted + dayMs].map(
    (near) => wanted - (msOfClocks(localTimeOf(new Date(near), timezone)) - near),
  );
  const found = moments.filter((moment) => msOfClocks(localTimeOf(new Date(moment), timezone)) === wanted);
  return new Date(found.length > 0 ? Math.min(...found) : Math.max(...moments)).toISOString();
}

/** A moment as the value of a `datetime-local` field in a time zone, to the minute. Empty without a moment. */
export function toClocks(moment: string | null, timezone: string): string {
  const date = new Date(moment ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return '';
  const { year, month, day, hour, minute } = localTimeOf(date, timezone);
  return `${year}-${month}-${day}T${hour}:${minute}`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** The time that the clocks of a time zone show at a moment. */
export function localTimeOf(moment: Date, timezone: string): LocalTime {
  const parts = formatOf(timezone).formatToParts(moment);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)?.value ?? '';
  return {
    year: part('year'),
    month: part('month'),
    day: part('day'),
    hour: part('hour'),
    minute: part('minute'),
    second: part('second'),
  };
}

/** Making a format takes a thousand times as long as using it. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
  formats.set(timeZone, format);
  return format;
}

/** `2026-11-23 14:05:09`, in the time zone. */
export function formatMoment(
  moment: string | number | null | undefined,
  timezone: string,
  { seconds = true }: { readonly seconds?: boolean } = {},
): string {
  const date = moment === null || moment === undefined ? undefined : new Date(moment);
  if (!date || Number.isNaN(date.getTime())) return '–';
  const { year, month, day, hour, minute, second } = localTimeOf(date, timezone);
  return `${year}-${month}-${day} ${hour}:${minute}${seconds ? `:${second}` : ''}`;
}

/** `InvalidRelation: ` at the start of a sentence: the code of an error, of at least two words. */
const errorCode = /(^|[.:] )([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+): (?=\S)/g;

/** Moves codes of errors behind a message: people read what has happened first. */
export function withCodesLast(message: string): string {
  const codes = [...message.matchAll(errorCode)].map(([, , code]) => code);
  if (codes.length === 0) return message;
  return `${message.replaceAll(errorCode, '$1')} (${[...new Set(codes)].join(', ')})`;
}

/** Replaces the times of a message, which are in UTC, by those of the clocks of a time zone, with its name. */
export const withLocalTimes = (message: string, timezone: string): string =>
  message.replaceAll(
    /(\d{4}-\d\d-\d\d)(?:T([\d:.]+)Z| ([\d:]{8}) UTC)/g,
    (_, date: string, iso: string | undefined, plain: string | undefined) =>
      `${formatMoment(`${date}T${iso ?? plain ?? ''}Z`, timezone, { seconds: iso === undefined })} ${timezone}`,
  );

/** Whether a message says a moment, to the second, as messages of the API do. */
export const namesMoment = (message: string, moment: string): boolean =>
  message.includes(`${moment.slice(0, 19).replace('T', ' ')} UTC`);

/** The interval `[start, end)` without what its ends have in common: `2026-11-23 14:00 – 15:00`. */
export function formatInterval(start: string, end: string, timezone: string): string {
  const from = formatMoment(start, timezone, { seconds: false });
  const to = formatMoment(end, timezone, { seconds: false });
  const [fromDate = '', fromTime] = from.split(' ');
  const [toDate = '', toTime] = to.split(' ');
  if (fromTime === '00:00' && toTime === '00:00') {
    const isDay = Date.parse(end) - Date.parse(start) <= 25 * 3_600_000;
    return isDay ? fromDate : `${fromDate} – ${toDate}`;
  }
  const clocksMs =
    msOfClocks(localTimeOf(new Date(end), timezone)) - msOfClocks(localTimeOf(new Date(start), timezone));
  // Where the clocks change, an hour from 01:00 to 01:00 needs the names of its times.
  const isChange = Math.abs(clocksMs - (Date.parse(end) - Date.parse(start))) >= 60_000;
  const [fromZone, toZone] = [start, end].map((moment) => (isChange ? ` ${zoneName(moment, timezone)}` : ''));
  return `${from}${fromZone} – ${fromDate === toDate ? toTime : to}${toZone}`;
}

/** `EST`, or `GMT+1` where a zone has no short name. */
const zoneName = (moment: string, timeZone: string): string =>
  new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'short' })
    .formatToParts(new Date(moment))
    .find(({ type }) => type === 'timeZoneName')?.value ?? '';

const steps: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });

/** `5 min. ago` or `in 2 hr.`; `now` within a few seconds. */
export function formatRelative(moment: string | number, now = Date.now()): string {
  const seconds = (new Date(moment).getTime() - now) / 1_000;
  const size = Math.abs(seconds);
  if (size < 5) return 'now';
  const [unit, length] = steps.find(([, length]) => size >= length) ?? (['second', 1] as const);
  return relative.format(Math.trunc(seconds / length), unit);
}
