import type { BatchExportDefinition, BatchExportEvent } from '../domain/batch_export.ts';
import type { Projection } from './projection.ts';
import { byKey, type CachedTable } from './row_cache.ts';

const definitionColumns = [
  'name',
  'model',
  'destination_type',
  'config_version',
  'interval',
  'timezone',
  'offset_hour',
  'offset_day',
  'start_at',
  'end_at',
  'dialect_query',
  'retention_days',
] as const satisfies readonly (keyof BatchExportDefinition)[];

type DefinitionColumns = Pick<BatchExportDefinition, (typeof definitionColumns)[number]>;

interface BatchExportRow extends DefinitionColumns {
  readonly id: string;
  readonly team_id: number;
  readonly paused: boolean;
  readonly scheduled_until: string;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly last_updated_at: string;
  readonly last_paused_at: string | null;
}

const table: CachedTable<BatchExportRow> = { name: 'exportd.batch_exports', key: ['id'], lookups: {} };

/** One row per batch export for the HTTP API. A deleted export keeps its row. */
export const batchExportsProjection: Projection = {
  name: 'batch_exports',
  version: 1,
  reads: [],
  owns: ['exportd.batch_exports'],
  tables: `
    create table exportd.batch_exports (
      id uuid primary key,
      team_id integer not null,
      name text not null,
      model text not null,
      destination_type text not null,
      config_version integer not null,
      interval text not null,
      timezone text not null,
      offset_hour integer not null,
      offset_day integer not null,
      start_at timestamptz,
      end_at timestamptz,
      dialect_query text,
      retention_days integer,
      paused boolean not null,
      scheduled_until timestamptz not null,
      deleted boolean not null default false,
      created_at timestamptz not null,
      last_updated_at timestamptz not null,
      last_paused_at timestamptz
    );
    create index batch_exports_team on exportd.batch_exports (team_id, created_at desc, id) where not deleted`,
  cached: [table],
  wants: ({ stream_type, stored }) => {
    if (stream_type !== 'batch_export') return [];
    const row = { table, lookup: byKey, values: [stored.stream_id], isNew: stored.stream_version === 1 };
    if (stored.type === 'BatchExportCreated' || isScheduling(stored)) return [row];
    return changesOf(stored, stored.recorded_at) ? [{ ...row, isAssigned: true }] : [];
  },
  fold: (rows, { stream_type, stored }) => {
    if (stream_type !== 'batch_export') return;
    const { stream_id: id, recorded_at } = stored;
    if (stored.type === 'BatchExportCreated') {
      const { team_id, definition, scheduled_until, paused } = stored.data;
      rows.set(table, {
        id,
        team_id,
        ...columnsOf(definition),
        paused,
        scheduled_until,
        deleted: false,
        created_at: recorded_at,
        last_updated_at: recorded_at,
        last_paused_at: paused ? recorded_at : null,
      });
      return;
    }
    if (isScheduling(stored)) {
      const row = rows.get(table, id);
      const scheduled_until = stored.data.end;
      if (row && Date.parse(scheduled_until) > Date.parse(row.scheduled_until))
        rows.change(table, row, { scheduled_until });
      return;
    }
    const changes = changesOf(stored, recorded_at);
    if (changes) rows.assign(table, [id], changes);
  },
};

type Scheduling = Extract<BatchExportEvent, { type: 'IntervalScheduled' | 'IntervalsSkipped' }>;
const isScheduling = <Event extends BatchExportEvent>(event: Event): event is Event & Scheduling =>
  event.type === 'IntervalScheduled' || event.type === 'IntervalsSkipped';

/** The columns of a definition, or of what changes in it. */
const columnsOf = <Definition extends Partial<BatchExportDefinition>>(definition: Definition) =>
  Object.fromEntries(
    definitionColumns.filter((column) => column in definition).map((column) => [column, definition[column]]),
  ) as Pick<Definition, keyof Definition & keyof DefinitionColumns>;

/** What an event sets in the row of its export, whatever that has; undefined if it sets nothing. */
function changesOf(
  event: Exclude<BatchExportEvent, Scheduling>,
  last_updated_at: string,
): Partial<BatchExportRow> | undefined {
  switch (event.type) {
    case 'BatchExportUpdated':
      return { last_updated_at, ...columnsOf(event.data.changes) };
    case 'BatchExportPaused':
      return {
        paused: true,
        last_updated_at,
        last_paused_at: event.data.last_paused_at ?? last_updated_at,
      };
    case 'BatchExportUnpaused':
      return { paused: false, last_updated_at };
    case 'BatchExportLastPausedAtSet':
      return { last_paused_at: event.data.last_paused_at, last_updated_at };
    case 'BatchExportDeleted':
      return { deleted: true, last_updated_at };
    case 'BatchExportCreated':
    case 'BackfillRequested':
    case 'RunRetryRequested':
    case 'DifferenceDecided':
    case 'FailedRunsRetryRequested':
    case 'HistoryCollapsed':
      return undefined;
  }
}
