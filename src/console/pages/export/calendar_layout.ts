import type { CoverageSegment, TimelineResponse } from '../../../http/console/pages/schema.ts';
import type { IntervalLook } from '../../components/statuses.ts';
import { localTimeOf } from '../../formatting/format.ts';

/** An entry of the timeline. */
export type TimelineEntry = TimelineResponse['entries'][number];

/** An entry of the calendar: one of the timeline, or a range that nothing has exported. */
export type CalendarEntry = Omit<TimelineEntry, 'status'> & { readonly status: IntervalLook };

/** The entries of a calendar from `after` to `before`, oldest first: those of the timeline, and what is missing or owed between them. */
export function withMissing(
  entries: readonly TimelineEntry[],
  segments: readonly CoverageSegment[],
  after: string,
  before: string,
): readonly CalendarEntry[] {
  const known = entries.map(
    (one) => [Date.parse(one.data_interval_start), Date.parse(one.data_interval_end)] as const,
  );
  const missing = segments.flatMap(({ start, end, kind, intervals }): CalendarEntry[] => {
    if ((kind !== 'missing' && kind !== 'owed') || intervals < 1) return [];
    const [from, to] = [Date.parse(start), Date.parse(end)];
    const length = (to - from) / intervals;
    // A hole can be years long: of it, the intervals that the calendar shows.
    const first = Math.max(0, Math.floor((Date.parse(after) - from) / length));
    const last = Math.min(intervals, Math.ceil((Date.parse(before) - from) / length));
    if (first >= last) return [];
    const entryOf = (index: number, count: number): CalendarEntry => ({
      data_interval_start: new Date(from + index * length).toISOString(),
      data_interval_end: new Date(from + (index + count) * length).toISOString(),
      intervals: count,
      status: kind === 'owed' ? 'due' : 'missing',
      reason: null,
      generation: null,
      rows: null,
      bytes: null,
      landed_at: null,
    });
    if (kind === 'missing') return [entryOf(first, last - first)];
    // Of what is owed, the timeline has what a run or the schedule has begun.
    const middles = Array.from({ length: last - first }, (_, index) => from + (first + index + 0.5) * length);
    return middles.flatMap((middle, index) =>
      known.some(([starts, ends]) => starts <= middle && middle < ends) ? [] : [entryOf(first + index, 1)],
    );
  });
  if (missing.length === 0) return entries;
  return [...entries, ...missing].toSorted(
    (one, other) => Date.parse(one.data_interval_start) - Date.parse(other.data_interval_start),
  );
}

/** A cell of the calendar: an interval, or one of a range of intervals without runs. */
export interface CalendarCell {
  readonly start: string;
  readonly end: string;
  readonly entry: CalendarEntry;
  /** The first column of the cell, from 0, and how many it covers. */
  readonly column: number;
  readonly columns: number;
}

/** A row of the calendar: an hour, a day, a week or a year. */
export interface CalendarRow {
  readonly label: string;
  readonly cells: readonly CalendarCell[];
}

/** The intervals of an export as a matrix. */
interface CalendarLayout {
  readonly columns: number;
  /** What the columns are, at the first column of each. */
  readonly headers: readonly { readonly column: number; readonly label: string }[];
  readonly rows: readonly CalendarRow[];
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** A range is drawn as at most so many cells. */
const maxCells = 1_000;
const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The minutes of an interval `every N minutes`; undefined for any other. */
const minutesOf = (interval: string): number | undefined => {
  const [, minutes] = /^every (\d+) minutes$/.exec(interval) ?? [];
  return minutes === undefined ? undefined : Number(minutes);
};

/** How much time the calendar of an export shows, in milliseconds. */
export function spanMsOf(interval: string): number {
  const minutes = minutesOf(interval);
  if (minutes !== undefined) return minutes < 5 ? 8 * hourMs : dayMs;
  if (interval === 'hour') return 14 * dayMs;
  if (interval === 'day') return 26 * 7 * dayMs;
  return 5 * 365 * dayMs;
}

/** How the intervals of an export stand in rows and columns. */
interface Grid {
  readonly columns: number;
  readonly unitMs: number;
  readonly headers: CalendarLayout['headers'];
  /** The row and the column of an interval that starts at this local time. */
  readonly place: (time: CalendarTime) => { readonly row: string; readonly column: number };
}

/** A time as clocks of a time zone show it, in numbers. */
interface CalendarTime {
  readonly date: string;
  readonly year: number;
  readonly month: number;
  readonly hour: number;
  readonly minute: number;
  /** The number of the day since 1970. */
  readonly day: number;
}

const headersOf = (labels: readonly string[], every = 1): CalendarLayout['headers'] =>
  labels.flatMap((label, column) => (column % every === 0 ? [{ column, label }] : []));

function gridOf(interval: string): Grid {
  const minutes = minutesOf(interval);
  if (minutes !== undefined) {
    const columns = Math.max(1, Math.round(60 / minutes));
    const labels = Array.from(
      { length: columns },
      (_, index) => `:${String(index * minutes).padStart(2, '0')}`,
    );
    return {
      columns,
      unitMs: minutes * minuteMs,
      headers: headersOf(labels, Math.max(1, Math.floor(columns / 4))),
      place: ({ date, hour, minute }) => ({
        row: `${date} ${String(hour).padStart(2, '0')}:00`,
        column: Math.floor(minute / minutes),
      }),
    };
  }
  if (interval === 'hour') {
    const labels = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, '0'));
    return {
      columns: 24,
      unitMs: hourMs,
      headers: headersOf(labels, 3),
      place: ({ date, hour }) => ({ row: date, column: hour }),
    };
  }
  if (interval === 'day')
    return {
      columns: 7,
      unitMs: dayMs,
      headers: headersOf(weekdays),
      // The first day of 1970 was a Thursday.
      place: ({ day }) => ({
        row: `week of ${dateOf(day - ((day + 3) % 7))}`,
        column: (day + 3) % 7,
      }),
    };
  if (interval === 'week')
    return {
      columns: 53,
      unitMs: 7 * dayMs,
      headers: [],
      place: ({ year, day }) => ({
        row: String(year),
        column: Math.floor((day - Date.UTC(year, 0, 1) / dayMs) / 7),
      }),
    };
  return {
    columns: 12,
    unitMs: 30.4 * dayMs,
    headers: headersOf(months),
    place: ({ year, month }) => ({ row: String(year), column: month - 1 }),
  };
}

const dateOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/**
 * Lays out the entries of a timeline by the clocks of a time zone. When clocks are set back, an hour occurs twice: its
 * row then has one column more.
 */
export function layOutCalendar(
  entries: readonly CalendarEntry[],
  interval: string,
  timezone: string,
): CalendarLayout {
  const grid = gridOf(interval);
  const rows = new Map<string, CalendarCell[]>();
  for (const { entry, start, end } of entries.flatMap(splitEntry)) {
    const { row, column } = grid.place(calendarTimeOf(start, timezone));
    const cells = rows.get(row) ?? [];
    const last = cells.at(-1);
    const free = last ? last.column + last.columns : 0;
    // An interval of another definition can be longer or shorter than the columns.
    const length = Math.round((Date.parse(end) - Date.parse(start)) / grid.unitMs);
    const from = Math.max(column, free);
    const columns = Math.max(1, Math.min(length, grid.columns - from));
    cells.push({ entry, start, end, column: from, columns });
    rows.set(row, cells);
  }
  return {
    columns: Math.max(grid.columns, ...[...rows.values()].map((cells) => columnsOf(cells))),
    headers: grid.headers,
    rows: [...rows].map(([label, cells]) => ({ label, cells })),
  };
}

const columnsOf = (cells: readonly CalendarCell[]): number => {
  const last = cells.at(-1);
  return last ? last.column + last.columns : 0;
};

/** The intervals of an entry: one, or those of a range without runs, which are about equally long. */
function splitEntry(entry: CalendarEntry): Pick<CalendarCell, 'entry' | 'start' | 'end'>[] {
  const from = Date.parse(entry.data_interval_start);
  const to = Date.parse(entry.data_interval_end);
  const count = Math.min(maxCells, Math.max(1, entry.intervals));
  const at = (index: number) => new Date(Math.round(from + ((to - from) * index) / count)).toISOString();
  return Array.from({ length: count }, (_, index) => ({ entry, start: at(index), end: at(index + 1) }));
}

/** Where a time is in the calendar of a time zone. */
function calendarTimeOf(time: string, timezone: string): CalendarTime {
  const local = localTimeOf(new Date(time), timezone);
  const [year, month] = [Number(local.year), Number(local.month)];
  return {
    date: `${local.year}-${local.month}-${local.day}`,
    year,
    month,
    hour: Number(local.hour),
    minute: Number(local.minute),
    day: Date.UTC(year, month - 1, Number(local.day)) / dayMs,
  };
}
