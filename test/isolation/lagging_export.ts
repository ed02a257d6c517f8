import { randomUUID } from 'node:crypto';
import { intervalContaining } from '../../src/domain/intervals.ts';
import { appendLaggingExport } from '../decisions/lagging_export.ts';
import { definition } from '../decisions/commander.ts';
import type { ControlPlaneHarness } from '../temporal/control_plane_harness.ts';

const minute = 60_000;

/** Creates an export of a project with the journal of one whose workers were down for some minutes: an interval is due for each. */
export async function createLaggingExport(
  { pool, journal }: Pick<ControlPlaneHarness, 'pool' | 'journal'>,
  minutes: number,
  projectId = 1,
): Promise<{ id: string; due: string[] }> {
  const id = randomUUID();
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
  const now = new Date(rows[0]?.now ?? 0).getTime();
  const minutely = definition;
  const revisions = [{ ...minutely, effective_from: null }];
  const { start } = intervalContaining(revisions, new Date(now - minutes * minute));
  await appendLaggingExport(journal, id, {
    team_id: projectId,
    definition: minutely,
    scheduled_until: start,
    paused: false,
  });
  const due = Array.from({ length: minutes }, (_, index) =>
    new Date(new Date(start).getTime() + index * minute).toISOString(),
  );
  return { id, due };
}
