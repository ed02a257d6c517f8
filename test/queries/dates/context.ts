import type { DateContext } from '../../../src/queries/dates.ts';
import type { QueryProject } from '../../../src/queries/query_kind.ts';

/** The context of dates in a project without events. */
export const contextOf = (
  timezone: string,
  now: string | Date,
  week_start_day: QueryProject['week_start_day'] = 'sunday',
): DateContext => ({
  project: {
    team_id: 1,
    timezone,
    week_start_day,
    test_account_filters: [],
    warehouse_tables: [],
    property_definitions: [],
    actions: [],
  },
  now: new Date(now),
  earliest: null,
});
