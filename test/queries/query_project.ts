import type { QueryProject } from '../../src/queries/query_kind.ts';

/** A project in UTC whose weeks start on Mondays and that has set nothing, with the fields that a test changes. */
export const queryProject = (changes: Partial<QueryProject> = {}): QueryProject => ({
  team_id: 1,
  timezone: 'UTC',
  week_start_day: 'monday',
  test_account_filters: [],
  warehouse_tables: [],
  property_definitions: [],
  actions: [],
  ...changes,
});
