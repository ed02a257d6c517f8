import { randomUUID } from 'node:crypto';
import { batchExportDecider, type BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { intervalContaining } from '../../src/domain/intervals.ts';
import { definition } from '../decisions/commander.ts';
import type { ControlStack } from '../temporal/control_stack.ts';

const minute = 60_000;

/**
 * An export as its journal stands after so many minutes in which no worker ran: one interval of a minute is owed for
 * each of them.
 */
export async function createBehind(
  { pool, journal }: Pick<ControlStack, 'pool' | 'journal'>,
  minutes: number,
): Promise<{ id: string; owed: string[] }> {
  const id = randomUUID();
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
  const now = new Date(rows[0]?.now ?? 0).getTime();
  const minutely: BatchExportDefinition = {
    ...(definition as BatchExportDefinition),
    interval: 'every 1 minutes',
  };
  const pieces = [{ ...minutely, effective_from: null }];
  const { start } = intervalContaining(pieces, new Date(now - minutes * minute));
  await journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, id);
    await stream.append(randomUUID(), [
      {
        type: 'BatchExportCreated',
        data: { team_id: 1, definition: minutely, scheduled_until: start, paused: false },
      },
    ]);
  });
  const owed = Array.from({ length: minutes }, (_, index) =>
    new Date(new Date(start).getTime() + index * minute).toISOString(),
  );
  return { id, owed };
}
