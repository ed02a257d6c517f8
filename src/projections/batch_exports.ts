import type { BatchExportDefinition, BatchExportEvent, HistoryDigest } from '../domain/batch_export.ts';
import type { StoredEvent } from '../journal/journal.ts';
import type { FoldedEvent, Projection } from './projection.ts';
import { byKey, type CachedTable, type Row, type RowCache } from './row_cache.ts';

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

const table: CachedTable = { name: 'exportd.batch_exports', key: ['id'], lookups: {} };

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
  apply: async (connection, event) => {
    if (event.stream_type !== 'batch_export') return;
    const known = event as unknown as BatchExportEvent;
    if (known.type === 'BatchExportCreated') {
      const row = createdRow(event, known.data);
      const columns = Object.keys(row);
      await connection.query(
        `insert into exportd.batch_exports (${columns.join(', ')})
         values (${columns.map((_, index) => `$${index + 1}`).join(', ')})`,
        Object.values(row),
      );
      return;
    }
    if (isScheduling(known)) {
      await connection.query(
        'update exportd.batch_exports set scheduled_until = greatest(scheduled_until, $2) where id = $1',
        [event.stream_id, known.data.end],
      );
      return;
    }
    const changes = Object.entries(changesOf(known, event.recorded_at) ?? {});
    if (changes.length === 0) return;
    await connection.query(
      `update exportd.batch_exports set ${changes.map(([column], index) => `${column} = $${index + 2}`).join(', ')}
       where id = $1`,
      [event.stream_id, ...changes.map(([, value]) => value)],
    );
  },
  batch: {
    tables: [table],
    wants: ({ stored: { stream_type, stream_id, stream_version } }) =>
      stream_type === 'batch_export'
        ? [{ table, lookup: byKey, values: [stream_id], isNew: stream_version === 1 }]
        : [],
    fold: foldRow,
  },
};

async function foldRow(rows: RowCache, { stored }: FoldedEvent): Promise<boolean> {
  if (stored.stream_type !== 'batch_export') return true;
  const event = stored as unknown as BatchExportEvent;
  if (event.type === 'BatchExportCreated') {
    rows.set(table, createdRow(stored, event.data));
    return true;
  }
  const row = await rows.get(table, stored.stream_id);
  if (!row) return true;
  if (isScheduling(event)) {
    const isLater = Date.parse(event.data.end) > Date.parse(row.scheduled_until as string);
    if (isLater) rows.change(table, row, { scheduled_until: event.data.end });
  } else {
    const changes = changesOf(event, stored.recorded_at);
    if (changes) rows.change(table, row, changes);
  }
  return true;
}

type Scheduling = Extract<BatchExportEvent, { type: 'IntervalScheduled' | 'IntervalsSkipped' }>;
const isScheduling = (event: BatchExportEvent): event is Scheduling =>
  event.type === 'IntervalScheduled' || event.type === 'IntervalsSkipped';

/** The row of a new export, with all columns. */
function createdRow(
  { stream_id, recorded_at }: StoredEvent,
  {
    team_id,
    definition,
    scheduled_until,
    paused,
  }: Extract<BatchExportEvent, { type: 'BatchExportCreated' }>['data'],
): Row {
  return {
    id: stream_id,
    team_id,
    ...Object.fromEntries(definitionColumns.map((column) => [column, definition[column]])),
    paused,
    scheduled_until,
    deleted: false,
    created_at: recorded_at,
    last_updated_at: recorded_at,
    last_paused_at: paused ? recorded_at : null,
  };
}

/** What an event changes in the row of its export; undefined if it changes nothing. */
function changesOf(event: Exclude<BatchExportEvent, Scheduling>, last_updated_at: string): Row | undefined {
  switch (event.type) {
    case 'BatchExportUpdated': {
      const { changes } = event.data;
      const changed = definitionColumns.filter((column) => column in changes);
      return { last_updated_at, ...Object.fromEntries(changed.map((column) => [column, changes[column]])) };
    }
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
    case 'FailedRunsRetryRequested':
    case 'TableRepairPlanned':
    case 'TableRepaired':
    case 'HistoryCollapsed':
      return undefined;
  }
}

/** What an event says is left of old runs and backfills; undefined for any other event. */
export const digestOf = ({ stream_type, type, data }: StoredEvent): HistoryDigest | undefined =>
  stream_type === 'batch_export' && type === 'HistoryCollapsed' ? (data as HistoryDigest) : undefined;
