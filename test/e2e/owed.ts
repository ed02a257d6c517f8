import { insertEvents } from './rows.ts';
import type { Stack } from './stack.ts';

const minute = 60_000;

/**
 * Makes the schedule of an export `every 1 minutes` owe the last so many minutes, as if it had been created so long ago
 * and nobody had run since: minutes cannot be shortened. There are ten events in each.
 * @returns the start of the first of them.
 */
export async function oweMinutes(stack: Stack, exportId: string, minutes: number): Promise<Date> {
  const start = new Date(Math.floor(Date.now() / minute) * minute - minutes * minute);
  await insertEvents(stack.pool, stack.projectId, start, minutes * 10, minutes * 60);
  await stack.pool.query(
    `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}', to_jsonb($2::text))
     where stream_type = 'batch_export' and stream_id = $1`,
    [exportId, start.toISOString()],
  );
  return start;
}
