import { randomBytes } from 'node:crypto';
import type { Stack } from './stack.ts';

/** Random bytes in a row, stored as base64, which compress to about this size. */
const noiseBytes = 4_500;

/** Inserts events that hardly compress, so that few of them fill a part of 5 MiB, spread over the hour from `start`. */
export async function insertLargeEvents(
  { pool, projectId }: Pick<Stack, 'pool' | 'projectId'>,
  start: Date,
  rows: number,
): Promise<void> {
  const noise = Array.from({ length: rows }, () => randomBytes(noiseBytes).toString('base64'));
  await pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), '$pageview', 'person-' || n % 100, gen_random_uuid(),
       jsonb_build_object('n', n, 'noise', noise), moment, moment, moment
     from unnest($3::text[]) with ordinality as row (noise, n)
     cross join lateral (select $2::timestamptz + make_interval(secs => 3600.0 * (n - 1) / $4) as moment) m`,
    [projectId, start, noise, rows],
  );
}
