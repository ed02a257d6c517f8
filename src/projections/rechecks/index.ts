import type { BatchExportEvent } from '../../domain/batch_export.ts';
import { filesOf, type RunEvent, type RunState } from '../../domain/run.ts';
import type { Connection } from '../../journal/database.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';
import type { FoldedState } from '../../journal/projector.ts';
import type { Projection } from '../projection.ts';
import { readStreamState } from '../stream_states/index.ts';

/**
 * One row per current manifest of events, until its last re-check. When a re-check is due depends on the settings, so
 * readers of the table decide. Persons are mutable and are not re-checked.
 */
export const rechecksProjection: Projection = {
  name: 'rechecks',
  version: 1,
  owns: ['exportd.rechecks'],
  tables: `
    create table exportd.rechecks (
      run_id uuid primary key,
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      -- Rows of the interval when it was exported, including rejected rows.
      rows bigint not null,
      checks_done smallint not null default 0,
      -- Milliseconds from the interval's end to the run's completion. Re-checks due before it are skipped, because the
      -- run counted the rows later.
      completed_after_ms bigint not null,
      unique (batch_export_id, data_interval_start, data_interval_end)
    );
    -- Rows of old intervals, which are never due, are at the end of the index.
    create index rechecks_due on exportd.rechecks (completed_after_ms)`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export') await foldExport(connection, event);
  },
};

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const event = stored as unknown as RunEvent;
  if (event.type === 'RunCompleted') await complete(connection, stored, folded);
  if (event.type === 'RunRechecked') {
    await connection.query('update exportd.rechecks set checks_done = $2 where run_id = $1', [
      stored.stream_id,
      event.data.check,
    ]);
    await connection.query('delete from exportd.rechecks where run_id = $1 and checks_done = 2', [
      stored.stream_id,
    ]);
  }
}

async function complete(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const known = folded?.state as RunState | undefined;
  const run = known ?? (await readStreamState<RunState>(connection, 'run', stored.stream_id));
  if (run.status === 'Absent') return;
  const { batch_export_id, data_interval_start: start, data_interval_end: end, model } = run.spec;
  await connection.query(
    `delete from exportd.rechecks
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, start, end],
  );
  if (model !== 'events') return;
  const exported = filesOf(run).reduce((sum, file) => sum + file.rows, 0);
  const rows = exported + (run.rejected_file?.rows ?? 0);
  const completed_after_ms = new Date(stored.recorded_at).getTime() - new Date(end).getTime();
  await connection.query(
    `insert into exportd.rechecks (run_id, batch_export_id, data_interval_start, data_interval_end, rows,
       completed_after_ms) values ($1, $2, $3, $4, $5, $6)`,
    [stored.stream_id, batch_export_id, start, end, rows, completed_after_ms],
  );
}

async function foldExport(connection: Connection, stored: StoredEvent): Promise<void> {
  const { type } = stored as unknown as BatchExportEvent;
  if (type !== 'BatchExportDeleted') return;
  await connection.query('delete from exportd.rechecks where batch_export_id = $1', [stored.stream_id]);
}
