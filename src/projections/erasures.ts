import type { ErasureEvent } from '../domain/erasure.ts';
import type { Connection } from '../journal/database.ts';
import type { StoredEvent } from '../journal/journal.ts';
import type { Projection } from './projection.ts';

/** One row for each erasure, and one for each interval in which it found rows or that it could not search. */
export const erasuresProjection: Projection = {
  name: 'erasures',
  version: 1,
  reads: [],
  owns: ['exportd.erasure_intervals', 'exportd.erasures'],
  tables: `
    create table exportd.erasures (
      id uuid primary key,
      position bigint not null unique,
      team_id integer not null,
      user_id integer not null,
      id_hashes text[] not null,
      status text not null,
      rows_erased bigint not null default 0,
      objects_removed bigint not null default 0,
      -- What locks of buckets hold, and exports whose objects could not be removed.
      held jsonb not null default '[]',
      certificate jsonb,
      created_at timestamptz not null,
      finished_at timestamptz,
      last_updated_at timestamptz not null
    );
    create index erasures_newest on exportd.erasures (team_id, position desc);
    create index erasures_active on exportd.erasures (id) where finished_at is null;
    create table exportd.erasure_intervals (
      erasure_id uuid not null references exportd.erasures,
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      -- Of the newest attempt.
      run_id uuid,
      rows bigint not null default 0,
      status text not null check (status in ('Running', 'Completed', 'Failed')),
      error text,
      primary key (erasure_id, batch_export_id, data_interval_start, data_interval_end)
    )`,
  apply: async (connection, event) => {
    if (event.stream_type === 'erasure') await fold(connection, event);
  },
  // Erasures are rare.
  batch: {
    tables: [],
    wants: () => [],
    fold: (_, { stored }) => Promise.resolve(stored.stream_type !== 'erasure'),
  },
};

async function fold(connection: Connection, stored: StoredEvent): Promise<void> {
  const { stream_id: id, recorded_at } = stored;
  const event = stored as unknown as ErasureEvent;
  switch (event.type) {
    case 'ErasureRequested': {
      const { team_id, user_id, id_hashes } = event.data;
      await connection.query(
        `insert into exportd.erasures (id, position, team_id, user_id, id_hashes, status, created_at, last_updated_at)
         values ($1, $2, $3, $4, $5, 'Running', $6, $6)`,
        [id, stored.global_position, team_id, user_id, id_hashes, recorded_at],
      );
      return;
    }
    case 'ErasureIntervalFound': {
      const { batch_export_id, start, end, run_id, rows } = event.data;
      await connection.query(
        `insert into exportd.erasure_intervals (erasure_id, batch_export_id, data_interval_start, data_interval_end, run_id, rows, status)
         values ($1, $2, $3, $4, $5, $6, 'Running')
         on conflict (erasure_id, batch_export_id, data_interval_start, data_interval_end)
         do update set run_id = excluded.run_id, rows = excluded.rows, status = 'Running', error = null`,
        [id, batch_export_id, start, end, run_id, rows],
      );
      break;
    }
    case 'ErasureIntervalEnded': {
      const { batch_export_id, start, end, run_id, error } = event.data;
      await connection.query(
        `insert into exportd.erasure_intervals (erasure_id, batch_export_id, data_interval_start, data_interval_end, run_id, status, error)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (erasure_id, batch_export_id, data_interval_start, data_interval_end)
         do update set run_id = excluded.run_id, status = excluded.status, error = excluded.error`,
        [id, batch_export_id, start, end, run_id, error === null ? 'Completed' : 'Failed', error],
      );
      await connection.query(
        `update exportd.erasures set rows_erased = (select coalesce(sum(rows), 0) from exportd.erasure_intervals
           where erasure_id = $1 and status = 'Completed') where id = $1`,
        [id],
      );
      break;
    }
    case 'ErasureObjectsRemoved': {
      const { batch_export_id, removed, held, error } = event.data;
      const listed = [
        ...held.map((object) => ({ batch_export_id, ...object })),
        ...(error === null ? [] : [{ batch_export_id, object: null, reason: error }]),
      ];
      await connection.query(
        'update exportd.erasures set objects_removed = objects_removed + $2, held = held || $3::jsonb where id = $1',
        [id, removed, JSON.stringify(listed)],
      );
      break;
    }
    case 'ErasureEnded':
      await connection.query(
        'update exportd.erasures set status = $2, certificate = $3, finished_at = $4 where id = $1',
        [id, event.data.status, JSON.stringify(event.data.certificate), recorded_at],
      );
      break;
  }
  await connection.query('update exportd.erasures set last_updated_at = $2 where id = $1', [id, recorded_at]);
}
