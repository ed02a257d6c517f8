/** The tables that every project has. */
export const ownTables = [
  'events',
  'persons',
  'person_distinct_ids',
  'sessions',
  'session_replay_events',
] as const;

/** Tables that analysts know and that are not kept here, and what to do instead. */
export const refusedTables: Readonly<Record<string, string>> = {
  groups: 'Groups are not stored; the key of a group is in the events, such as $group_0.',
  cohort_people: 'Cohorts are not stored; write their condition into WHERE.',
  static_cohort_people: 'Cohorts are not stored; write their condition into WHERE.',
  raw_persons: 'Read persons.',
  raw_sessions: 'Read sessions.',
  raw_session_replay_events: 'Read session_replay_events.',
  log_entries: 'Logs are not stored.',
  query_log: 'Queries are not stored.',
  heatmaps: 'Heatmaps are not stored.',
};

/** Whether a name is one of the dialect's own, so that no other table may have it. */
export const isDialectTable = (name: string): boolean =>
  ownTables.some((own) => own === name) || Object.hasOwn(refusedTables, name);
