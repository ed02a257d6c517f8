import { activeRunStatuses } from '../domain/run_state.ts';

const statuses = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/** SQL condition: the interval of a row has an active run. */
export const hasActiveRun = (row: string): string => `exists (
  select from exportd.batch_export_runs active
  where active.batch_export_id = ${row}.batch_export_id and active.data_interval_start = ${row}.data_interval_start
    and active.status in (${statuses}))`;
