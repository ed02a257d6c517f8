import { randomUUID } from 'node:crypto';
import type { BatchExportDefinition } from '../../src/domain/batch_export.ts';
import { intervalContaining } from '../../src/domain/intervals.ts';
import { appendExportBehind } from '../decisions/behind.ts';
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
  const minutely = definition as BatchExportDefinition;
  const pieces = [{ ...minutely, effective_from: null }];
  const { start } = intervalContaining(pieces, new Date(now - minutes * minute));
  await appendExportBehind(journal, id, {
    team_id: 1,
    definition: minutely,
    scheduled_until: start,
    paused: false,
  });
  const owed = Array.from({ length: minutes }, (_, index) =>
    new Date(new Date(start).getTime() + index * minute).toISOString(),
  );
  return { id, owed };
}
