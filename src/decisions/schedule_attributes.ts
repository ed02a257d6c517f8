import type { Pool } from '../journal/database.ts';

/** The search attributes of a schedule workflow, except the id of its export. */
export interface ScheduleAttributes {
  readonly project: string;
  readonly name: string;
  readonly model: string;
  readonly destination: string;
  readonly status: 'Active' | 'Paused' | 'Deleted';
}

/** Reads the search attributes of an export's schedule; null if there is no such export. */
export async function readScheduleAttributes(
  pool: Pool,
  batchExportId: string,
): Promise<ScheduleAttributes | null> {
  const { rows } = await pool.query<{
    team_id: number;
    name: string;
    model: string;
    destination_type: string;
    paused: boolean;
    deleted: boolean;
  }>(
    'select team_id, name, model, destination_type, paused, deleted from exportd.batch_exports where id = $1',
    [batchExportId],
  );
  const [row] = rows;
  if (!row) return null;
  return {
    project: String(row.team_id),
    name: row.name,
    model: row.model,
    destination: row.destination_type,
    status: row.deleted ? 'Deleted' : row.paused ? 'Paused' : 'Active',
  };
}
