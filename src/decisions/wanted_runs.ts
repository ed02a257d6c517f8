import { isUncounted } from '../projections/backfills.ts';

/**
 * SQL condition on the table alias `run`, a run of an export: the schedule wants it, or a backfill whose status is none
 * of `ended`. A backfill wants the runs that it created and those that it waits for, with their automatic retries, which
 * belong to the backfill that created the first of them.
 */
const isWanted = (ended: readonly ('Cancelled' | 'Paused')[]): string => {
  const wants = (backfill: string) =>
    `${backfill}.status not in (${ended.map((status) => `'${status}'`).join(', ')})`;
  return `(run.backfill_id is null or run.adopted_by_schedule
    or exists (select from exportd.backfills owner where owner.id = run.backfill_id and ${wants('owner')})
    or exists (
      select from exportd.batch_export_runs former
      join exportd.backfill_runs waiting on waiting.run_id = former.id and ${isUncounted('waiting')}
      join exportd.backfills other on other.id = waiting.backfill_id and ${wants('other')}
      where former.batch_export_id = run.batch_export_id and former.data_interval_start = run.data_interval_start
        and former.data_interval_end = run.data_interval_end and former.backfill_id = run.backfill_id
        and former.position <= run.position))`;
};

/** SQL condition: the schedule or a backfill still wants the run `run`. Otherwise it ends, and is not retried. */
export const isWantedRun = isWanted(['Cancelled']);

/** SQL condition: a schedule or backfill that is not paused wants the run `run`, so that its automatic retry may start. */
export const isRetryableRun = isWanted(['Cancelled', 'Paused']);
