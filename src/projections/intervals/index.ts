import type { BatchExportEvent } from '../../domain/batch_export.ts';
import type { DataInterval } from '../../domain/intervals.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import type { Connection } from '../../journal/database.ts';
import type { FoldedState } from '../../journal/projector.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';
import type { Projection } from '../projection.ts';
import { readRun } from '../read_run.ts';
import { intervalChangeOf } from './interval_changes.ts';
import { insertSkippedRange, openInterval } from './interval_rows.ts';

/** The stored statuses of an interval. Readers derive `expired` from the clock, and `due` from the schedule's state. */
export const intervalStatuses = [
  'running',
  'exported',
  'unsettled',
  'held',
  'failed',
  'gap',
  'paused',
  'excluded',
] as const;

/**
 * The interval ledger: one row per interval that has a run, and one per range of intervals that the schedule skipped.
 * The rows of an export do not overlap: a run of a skipped interval splits the range. Rows are never deleted, because
 * runs are not either.
 */
export const intervalsProjection: Projection = {
  name: 'intervals',
  version: 1,
  owns: ['exportd.intervals'],
  tables: `
    create table exportd.intervals (
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      status text not null check (status in (${intervalStatuses.map((status) => `'${status}'`).join(', ')})),
      -- Why the interval failed or is a gap: the status of its newest run. Why a range was skipped.
      reason text,
      -- Whether the interval belongs to the schedule: it created a run of it, or adopted a backfill's.
      is_scheduled boolean not null default false,
      -- The newest run; null for a skipped range.
      run_id uuid,
      -- The error's numbers if the newest run that failed or completed was held.
      held jsonb,
      -- Keys of the newest run that other objects had.
      taken_keys integer not null default 0,
      -- The current manifest; null before the first.
      manifest_run_id uuid,
      generation integer,
      rows bigint,
      rejected_rows bigint,
      bytes bigint,
      files integer,
      settled boolean,
      -- What followed once the transactions had ended that an unsettled run did not wait for.
      settling_outcome text,
      completed_at timestamptz,
      -- When a lifecycle rule of the bucket deletes the first of its objects; null without a rule.
      expires_at timestamptz,
      -- Rows of the source after the export, and rows of the files with the rejected ones, as fingerprint totals.
      source_fingerprint jsonb,
      bucket_fingerprint jsonb,
      -- Published files of earlier generations that stay: not needed by readers, and needed by them (persons).
      kept_files integer,
      earlier_files integer,
      primary key (batch_export_id, data_interval_start, data_interval_end)
    );
    -- All others are exported. There are few, however old the export is.
    create index intervals_not_exported on exportd.intervals (batch_export_id, data_interval_start)
      where status <> 'exported';
    create index intervals_skipped on exportd.intervals (batch_export_id, data_interval_start) where run_id is null`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export') await foldExport(connection, event);
  },
};

async function foldExport(connection: Connection, stored: StoredEvent): Promise<void> {
  const event = stored as unknown as BatchExportEvent;
  if (event.type === 'IntervalsSkipped') await insertSkippedRange(connection, stored.stream_id, event.data);
  // A run that the schedule created itself is marked by its first event, which follows.
  if (event.type === 'IntervalScheduled') await markScheduled(connection, stored.stream_id, event.data);
}

const markScheduled = (connection: Connection, batchExportId: string, { start, end }: DataInterval) =>
  connection.query({
    name: 'interval-scheduled',
    text: `update exportd.intervals set is_scheduled = true
      where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    values: [batchExportId, start, end],
  });

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const event = stored as unknown as RunEvent;
  if (event.type === 'RunCreated') return openInterval(connection, stored.stream_id, event.data);
  const change = intervalChangeOf(event);
  if (change === undefined) return;
  const run = await readRun(connection, stored, folded);
  await change(connection, run, stored);
}
