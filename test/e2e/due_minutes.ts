import { insertEvents } from './rows.ts';
import type { Stack } from './stack.ts';

const minute = 60_000;

/**
 * Makes the last `minutes` intervals of an export `every 1 minutes` due, as if it had been created before them and no
 * worker had run since. Tests need not wait for minutes to end. Inserts ten events into each minute.
 * @returns the start of the first due minute.
 */
export async function makeMinutesDue(stack: Stack, exportId: string, minutes: number): Promise<Date> {
  const start = new Date(Math.floor(Date.now() / minute) * minute - minutes * minute);
  await insertEvents(stack.pool, stack.projectId, start, minutes * 10, minutes * 60);
  await stack.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}', to_jsonb($2::text))
     where stream_type = 'batch_export' and stream_id = $1`,
    [exportId, start.toISOString()],
  );
  return start;
}
