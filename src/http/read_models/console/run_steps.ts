import type { RunEvent } from '../../../domain/run_events.ts';
import type { Pool } from '../../../journal/database.ts';
import type { RunStepsResponse } from '../../schemas/console/run_activity.ts';
import { describeStep } from './describe_step.ts';

/** The steps of a response. A run of hundreds of files has more. */
const maxSteps = 500;
/** The bins of the throughput. */
const maxBins = 120;

/** Reads what a run did, from the journal: its steps, and the rows and bytes that it sent over time. */
export async function readRunSteps(pool: Pool, runId: string): Promise<Omit<RunStepsResponse, 'run'>> {
  const { rows } = await pool.query<RunEvent & { readonly recorded_at: string }>(
    `select event_type as type, data, recorded_at from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type <> 'RunPartPlanned'
     order by stream_version limit $2`,
    [runId, maxSteps + 1],
  );
  const { parts, throughput } = await readThroughput(pool, runId);
  return {
    steps: rows.slice(0, maxSteps).map(({ recorded_at, ...event }) => ({
      at: recorded_at,
      level: 'info' as const,
      detail: null,
      range: null,
      ...describeStep(event),
    })),
    parts,
    is_complete: rows.length <= maxSteps,
    throughput,
  };
}

async function readThroughput(
  pool: Pool,
  runId: string,
): Promise<Pick<RunStepsResponse, 'parts' | 'throughput'>> {
  const { rows } = await pool.query<{
    at: string;
    seconds: number;
    rows: number;
    bytes: number;
    parts: number;
  }>(
    `with part as (
       select recorded_at, (data->'part'->>'rows')::bigint as rows, (data->'part'->>'bytes')::bigint as bytes
       from exportd.journal_events
       where stream_type = 'run' and stream_id = $1 and event_type = 'RunPartPlanned'
     ), bin as (
       select min(recorded_at) as origin,
         greatest(1, ceil(extract(epoch from max(recorded_at) - min(recorded_at)) / $2))::float8 as seconds
       from part)
     select date_bin(make_interval(secs => bin.seconds), part.recorded_at, bin.origin) as at, bin.seconds,
       sum(part.rows)::bigint as rows, sum(part.bytes)::bigint as bytes, count(*) as parts
     from part cross join bin group by 1, 2 order by 1`,
    [runId, maxBins],
  );
  return {
    parts: rows.reduce((total, bin) => total + bin.parts, 0),
    throughput: rows.map(({ at, seconds, rows: sent, bytes }) => ({ at, seconds, rows: sent, bytes })),
  };
}
