import { DateTime } from 'luxon';
import * as z from 'zod';
import { parseRelativeDate } from '../filters/condition.ts';
import { momentBefore, type WeekStart } from '../filters/moments.ts';
import { timestampSchema } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import { invalid } from './api_error.ts';

/** The parameters of lists that are bounds. */
const boundNames = ['after', 'before', 'start', 'end', 'since', 'until'] as const;

/** PostgreSQL has no earlier year in the form of ISO 8601. */
const firstYear = 1;

const message =
  'Must be an ISO 8601 time with an offset, such as 2026-11-01T10:00:00Z, or a time ago, such as -2d or -12h.';

/** A bound of a list: a time, or a relative date such as `-2d`, as queries have them. */
export const listTime = z
  .union([timestampSchema, z.string().refine((text) => parseRelativeDate(text) !== null)], message)
  .meta({ examples: ['2026-11-01T10:00:00Z', '-2d'] });

/**
 * Replaces the relative dates among the parameters of a list by times, in the time zone of the project.
 * @throws ApiError 400 for a date that no calendar has
 */
export async function resolveListTimes<Query extends Readonly<Record<string, unknown>>>(
  pool: Pool,
  teamId: number,
  query: Query,
): Promise<Query> {
  const relative = boundNames.flatMap((name) => {
    const text = query[name];
    const date = typeof text === 'string' ? parseRelativeDate(text) : null;
    return date ? [{ name, date }] : [];
  });
  if (relative.length === 0) return query;
  const project = await readCalendar(pool, teamId);
  const present = DateTime.fromISO(project.now, { zone: project.timezone });
  const resolved = relative.map(({ name, date }) => {
    const moment = momentBefore(present, date, project);
    if (!moment.isValid || moment.year < firstYear) throw invalid('The time is too long ago.', name);
    return [name, moment.toUTC().toISO()] as const;
  });
  return { ...query, ...Object.fromEntries(resolved) };
}

/** The time zone and the weeks of a project, and the time of the database. */
async function readCalendar(
  pool: Pool,
  teamId: number,
): Promise<{ readonly timezone: string; readonly week_start_day: WeekStart; readonly now: string }> {
  const { rows } = await pool.query<{ timezone: string; week_start_day: WeekStart; now: string }>(
    'select timezone, week_start_day, clock_timestamp() as now from exportd.projects where id = $1',
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`Project ${teamId} does not exist.`);
  return found;
}
