import { localTimeOf } from './local_time.ts';

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
  return fromDate === toDate ? `${from} – ${toTime ?? ''}` : `${from} – ${to}`;
}

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
