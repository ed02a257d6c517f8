import type { DateContext } from '../../../src/queries/dates.ts';
import type { QueryProject } from '../../../src/queries/query_kind.ts';
import { queryProject } from '../query_project.ts';

/** The context of dates in a project without events. */
export const contextOf = (
  timezone: string,
  now: string | Date,
  week_start_day: QueryProject['week_start_day'] = 'sunday',
): DateContext => ({
  project: queryProject({ timezone, week_start_day }),
  now: new Date(now),
  earliest: null,
});
