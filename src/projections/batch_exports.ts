import type { BatchExportDefinition, BatchExportEvent } from '../domain/batch_export.ts';
import type { Connection } from '../journal/database.ts';
import type { StoredEvent } from '../journal/journal.ts';
import type { Projection } from './projection.ts';

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

/** One row per batch export for the HTTP API. A deleted export keeps its row. */
export const batchExportsProjection: Projection = {
  name: 'batch_exports',
  version: 1,
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
    if (event.stream_type === 'batch_export') await fold(connection, event);
  },
};

async function fold(connection: Connection, stored: StoredEvent): Promise<void> {
  const id = stored.stream_id;
  const at = stored.recorded_at;
  const event = stored as unknown as BatchExportEvent;
  const set = (assignments: string, ...values: readonly unknown[]) =>
    connection.query(`update exportd.batch_exports set ${assignments} where id = $1`, [id, ...values]);
  switch (event.type) {
    case 'BatchExportCreated': {
      const { team_id, definition, scheduled_until, paused } = event.data;
      const values = [id, team_id, ...definitionColumns.map((column) => definition[column])];
      const rest = [paused, scheduled_until, at, at, paused ? at : null];
      const parameters = [...values, ...rest].map((_, index) => `$${index + 1}`).join(', ');
      await connection.query(
        `insert into exportd.batch_exports (id, team_id, ${definitionColumns.join(', ')},
           paused, scheduled_until, created_at, last_updated_at, last_paused_at) values (${parameters})`,
        [...values, ...rest],
      );
      return;
    }
    case 'BatchExportUpdated': {
      const changed = definitionColumns.filter((column) => column in event.data.changes);
      const assignments = changed.map((column, index) => `${column} = $${index + 3}`);
      await set(
        ['last_updated_at = $2', ...assignments].join(', '),
        at,
        ...changed.map((column) => event.data.changes[column]),
      );
      return;
    }
    case 'BatchExportPaused':
      await set(
        'paused = true, last_updated_at = $2, last_paused_at = $3',
        at,
        event.data.last_paused_at ?? at,
      );
      return;
    case 'BatchExportUnpaused':
      await set('paused = false, last_updated_at = $2', at);
      return;
    case 'BatchExportLastPausedAtSet':
      await set('last_paused_at = $2, last_updated_at = $3', event.data.last_paused_at, at);
      return;
    case 'IntervalScheduled':
    case 'IntervalsSkipped':
      await set('scheduled_until = greatest(scheduled_until, $2)', event.data.end);
      return;
    case 'BatchExportDeleted':
      await set('deleted = true, last_updated_at = $2', at);
      return;
    case 'BackfillRequested':
    case 'RunRetryRequested':
    case 'FailedRunsRetryRequested':
    case 'HistoryCollapsed':
      return;
  }
}
