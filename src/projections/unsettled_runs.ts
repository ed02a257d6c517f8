import type { RunEvent } from '../domain/run_events.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import type { Projection } from './projection.ts';
import { readRun } from './stream_states.ts';

/** One row per interval whose current manifest was exported while transactions of the source were open. */
export const unsettledRunsProjection: Projection = {
  name: 'unsettled_runs',
  version: 1,
  owns: ['exportd.unsettled_runs'],
  tables: `
    create table exportd.unsettled_runs (
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      -- The run of the current manifest.
      run_id uuid not null unique,
      model text not null,
      -- The state of its barrier; null once the interval is exported again. The row remains until that run completes.
      barrier jsonb,
      -- Whether the run was itself requested because the transactions of an earlier run had ended.
      is_repeated boolean not null default false,
      primary key (batch_export_id, data_interval_start, data_interval_end)
    );
    create index unsettled_runs_waiting on exportd.unsettled_runs (run_id) where barrier is not null`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export' && event.type === 'BatchExportDeleted')
      await connection.query('delete from exportd.unsettled_runs where batch_export_id = $1', [
        event.stream_id,
      ]);
  },
};

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const event = stored as unknown as RunEvent;
  switch (event.type) {
    case 'RunCompleted':
      await replaceManifest(connection, stored, folded);
      return;
    case 'RunBarrierAdvanced':
      await connection.query('update exportd.unsettled_runs set barrier = $2 where run_id = $1', [
        stored.stream_id,
        JSON.stringify(event.data.barrier),
      ]);
      return;
    case 'RunSettled':
      await connection.query(
        event.data.outcome === 'exported_again'
          ? 'update exportd.unsettled_runs set barrier = null where run_id = $1'
          : 'delete from exportd.unsettled_runs where run_id = $1',
        [stored.stream_id],
      );
      return;
    default:
      return;
  }
}

/** The run's manifest is current from here on. The barrier of the former one no longer matters. */
async function replaceManifest(
  connection: Connection,
  stored: StoredEvent,
  folded?: FoldedState,
): Promise<void> {
  const run = await readRun(connection, stored, folded);
  const { batch_export_id, data_interval_start: start, data_interval_end: end, model } = run.spec;
  const { rows: former } = await connection.query<{ is_repeated: boolean }>({
    name: 'unsettled-run-replaced',
    text: `delete from exportd.unsettled_runs
      where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
      returning barrier is null as is_repeated`,
    values: [batch_export_id, start, end],
  });
  if (run.unsettled_barrier === null) return;
  await connection.query(
    `insert into exportd.unsettled_runs (batch_export_id, data_interval_start, data_interval_end, run_id, model, barrier,
       is_repeated) values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      batch_export_id,
      start,
      end,
      stored.stream_id,
      model,
      JSON.stringify(run.unsettled_barrier),
      former[0]?.is_repeated ?? false,
    ],
  );
}
