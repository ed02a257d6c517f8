import { setTimeout as delay } from 'node:timers/promises';
import { LaunchError } from '../../local_stack/launch_error.ts';
import { destinationFor } from '../formats.ts';
import type { WorkersScratch } from './workers_scratch.ts';

/** Hours that each of some exports exports. */
export interface ExportHours {
  readonly exportIds: readonly string[];
  readonly start: Date;
  readonly hours: number;
}

/** How a backfill of these hours ended. */
export interface Backfilled {
  /** From the first run that became Running to the last that became Completed, by the journal. */
  readonly seconds: number;
  readonly rows: number;
}

const hourMs = 3_600_000;
const pollMs = 100;

/** The time after a number of hours. */
export const hoursAfter = (start: Date, hours: number): Date => new Date(start.getTime() + hours * hourMs);

/**
 * Creates paused exports, each with its name as the prefix.
 * @param endpoint URL of the S3 server, which may be a proxy
 * @returns their ids
 */
export async function createExports(
  { stack, api }: WorkersScratch,
  names: readonly string[],
  format: string,
  endpoint: string,
): Promise<string[]> {
  const { type, config } = destinationFor(format, stack);
  const exportIds: string[] = [];
  for (const name of names) {
    const created = await api.request<{ id: string }>('POST', '', {
      name,
      model: 'events',
      interval: 'hour',
      paused: true,
      destination: { type, config: { ...config, endpoint_url: endpoint, prefix: name } },
    });
    exportIds.push(created?.id ?? '');
  }
  return exportIds;
}

/** Backfills the hours of all exports at once. @throws LaunchError when a run does not complete */
export async function backfill(
  { pool, api, signal }: WorkersScratch,
  { exportIds, start, hours }: ExportHours,
): Promise<Backfilled> {
  const end = hoursAfter(start, hours);
  const body = { start_at: start.toISOString(), end_at: end.toISOString() };
  await Promise.all(exportIds.map((id) => api.request('POST', `${id}/backfill/`, body)));
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await pool.query<{ completed: number; failure: string | null; rows: number }>(
      `select count(*) filter (where status = 'Completed') as completed, sum(records_completed)::float8 as rows,
         min(status || ': ' || latest_error) filter (where status not in ('Starting', 'Running', 'Completed')) as failure
       from exportd.batch_export_runs where ${ofHours}`,
      [exportIds, start, end],
    );
    const [found] = rows;
    if (found?.failure) throw new LaunchError(`A run did not complete. ${found.failure}`);
    if (found?.completed === exportIds.length * hours) {
      const times = await pool.query<{ seconds: number }>(secondsSql, [exportIds, start, end]);
      return { rows: found.rows, seconds: times.rows[0]?.seconds ?? Number.NaN };
    }
    await delay(pollMs);
  }
}

/** The runs of `$1` exports from `$2` to `$3`. */
export const ofHours = 'batch_export_id = any($1) and data_interval_start >= $2 and data_interval_start < $3';

const secondsSql = `select extract(epoch from max(recorded_at) filter (where event_type = 'RunCompleted')
    - min(recorded_at) filter (where event_type = 'RunExportStarted'))::float8 as seconds
  from exportd.journal_events where stream_type = 'run'
    and stream_id in (select id from exportd.batch_export_runs where ${ofHours})`;
