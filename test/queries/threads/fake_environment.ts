import type { ParseTask, RunEnvironment, RunTask } from '../../../src/queries/query_executor.ts';

const project = {
  team_id: 1,
  timezone: 'UTC',
  week_start_day: 'monday',
  test_account_filters: [],
  warehouse_tables: [],
  property_definitions: [],
} as const;
const now = new Date('2026-11-23T12:00:00Z');

/** Settings of an executor with one slot. */
export const executorSettings = {
  EXPORTD_EVENTS_RELATION: 'public.events',
  EXPORTD_PERSONS_RELATION: 'public.persons',
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.person_distinct_ids',
  EXPORTD_QUERY_SLOTS: 1,
  EXPORTD_QUERY_THREAD_MEMORY: 64 * 2 ** 20,
};

/** A run of a text of the dialect. */
export const runTask = (query: string): RunTask => ({
  kind: 'DialectQuery',
  query: { kind: 'DialectQuery', query },
  variables: {},
  project,
  now,
  row_limit: 1_000,
  byte_limit: 1_000_000,
});

export const parseTask = (query: Readonly<Record<string, unknown>>): ParseTask => ({
  query,
  filters_override: null,
  project,
  now,
});

/** Columns of the relations, as the catalog returns them. */
const catalog = ['events', 'persons', 'person_distinct_ids'].map((name) => ({
  relation: `"public"."${name}"`,
  columns: [
    ['team_id', 'integer'],
    ['event', 'text'],
  ],
}));

/** A connection that returns the catalog, and `readRows` for everything else. */
export const environment = (
  signal: AbortSignal,
  readRows: RunEnvironment['connection']['readRows'],
): RunEnvironment => ({
  connection: {
    query: () => Promise.resolve({ rows: catalog }),
    readRows,
  },
  progress: () => undefined,
  signal,
});
