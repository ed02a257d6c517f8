/** The built-in tables. */
export const builtInTables = [
  'events',
  'persons',
  'person_distinct_ids',
  'sessions',
  'session_replay_events',
  'groups',
] as const;

/** Tables that exist in ClickHouse installations but not here, or not in every source, with what to use instead. */
export const unsupportedTables: Readonly<Record<string, string>> = {
  groups: 'The source has no relation public.groups; group keys are in events, for example $group_0.',
  session_replay_events: 'The source has no relation public.session_replay_events.',
  cohort_people: 'Cohorts are not stored; put their conditions in WHERE.',
  static_cohort_people: 'Cohorts are not stored; put their conditions in WHERE.',
  raw_persons: 'Use persons.',
  raw_sessions: 'Use sessions.',
  raw_session_replay_events: 'Use session_replay_events.',
  log_entries: 'Logs are not stored.',
  query_log: 'Queries are not stored.',
  heatmaps: 'Heatmaps are not stored.',
};

/** Whether a name is reserved for the dialect, so that no warehouse table may use it. */
export const isDialectTable = (name: string): boolean =>
  builtInTables.some((own) => own === name) || Object.hasOwn(unsupportedTables, name);
