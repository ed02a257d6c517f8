import { backfillDecider, type BackfillEvent } from '../domain/backfill.ts';
import type { BatchExportEvent } from '../domain/batch_export.ts';
import type { Recorded } from '../domain/event.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import type { BackfillHistory, ExportHistory } from './owed_time.ts';

/** Reads what was requested of an export from the journal, and the time of the database clock. */
export async function readHistory(
  pool: Pool,
  batchExportId: string,
): Promise<ExportHistory & { readonly now: Date }> {
  const { rows: events } = await pool.query<Recorded<BatchExportEvent>>(
    `select event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'batch_export' and stream_id = $1 and event_type <> 'IntervalScheduled'
     order by stream_version`,
    [batchExportId],
  );
  const { rows: scheduled } = await pool.query<{ now: string; until: string | null }>(
    `select clock_timestamp() as now, max((data->>'end')::timestamptz) as until from exportd.journal_events
     where stream_type = 'batch_export' and stream_id = $1 and event_type = 'IntervalScheduled'`,
    [batchExportId],
  );
  return {
    events,
    scheduledUntil: scheduled[0]?.until ?? null,
    now: new Date(scheduled[0]?.now ?? Number.NaN),
    backfills: await readBackfills(pool, batchExportId),
  };
}

/** The backfills of an export, retries included. */
async function readBackfills(pool: Pool, batchExportId: string): Promise<BackfillHistory[]> {
  const { rows } = await pool.query<Recorded<BackfillEvent> & { stream_id: string }>(
    `select stream_id, event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'backfill' and stream_id in (
       select (data->>'backfill_id')::uuid from exportd.journal_events
       where stream_type = 'batch_export' and stream_id = $1
         and event_type in ('BackfillRequested', 'RunRetryRequested'))
     order by stream_id, stream_version`,
    [batchExportId],
  );
  const streams = Map.groupBy(rows, ({ stream_id }) => stream_id);
  return [...streams.values()].flatMap(foldBackfill);
}

function foldBackfill(events: readonly Recorded<BackfillEvent>[]): BackfillHistory[] {
  const intervals = new Map<string, DataInterval>();
  let state = backfillDecider.initialState;
  for (const event of events) {
    if (event.type === 'BackfillRunCreated') intervals.set(event.data.run_id, event.data);
    if (event.type === 'BackfillRunContinued') {
      const continued = intervals.get(event.data.run_id);
      if (continued) intervals.set(event.data.next_run_id, continued);
    }
    state = backfillDecider.evolve(state, event);
    // What happens after the cancellation does not change what the backfill reached.
    if (state.status === 'Cancelled') break;
  }
  if (state.status === 'Absent') return [];
  return [
    {
      spec: state.spec,
      status: state.status,
      createdUntil: state.created_until,
      active: state.active.flatMap((id) => intervals.get(id) ?? []),
      lastEventAt: events.at(-1)?.recorded_at ?? '',
    },
  ];
}
