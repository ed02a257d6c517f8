import type { SourceRelation } from '@exportd/dialect/schema';
import type { ParseTask, RunEnvironment, RunTask } from '../../../src/queries/query_executor.ts';
import type { Warehouse, WarehouseSchema } from '../../../src/queries/warehouse.ts';
import { queryProject } from '../query_project.ts';

const project = queryProject();
const now = new Date('2026-11-23T12:00:00Z');

/** Settings of an executor with one slot. */
export const executorSettings = {
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

const relation = (name: string): SourceRelation => ({
  relation: `"public"."${name}"`,
  columns: new Map([
    ['team_id', 'integer'],
    ['event', 'text'],
  ]),
});

const schema: WarehouseSchema = {
  events: relation('events'),
  persons: relation('persons'),
  personDistinctIds: relation('person_distinct_ids'),
  sessionReplayEvents: null,
  groups: null,
  cohortPeople: null,
  warehouse: new Map(),
  properties: new Map(),
  substitute: null,
};

/** A warehouse whose rows `readRows` reads. */
export const environment = (signal: AbortSignal, readRows: Warehouse['readRows']): RunEnvironment => ({
  warehouse: { schema: () => Promise.resolve(schema), readRows },
  inferTypes: () => Promise.resolve([]),
  progress: () => undefined,
  signal,
});
