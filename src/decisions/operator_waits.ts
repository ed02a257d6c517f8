import type { Pool } from '../journal/database.ts';

/**
 * Renews the time limits of a run that waited for the operator in one of its executions, so that the wait uses up neither
 * its retry budget nor its automatic retries. Once per wait; a repeated call for the same execution has the same result.
 * @returns whether the run continues in a new execution instead of ending as FailedRetryable or TimedOut
 */
export async function renewTimeLimits(pool: Pool, runId: string, executionId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update exportd.operator_fault_runs set renewed_execution = $2
     where run_id = $1 and coalesce(renewed_execution, $2) = $2`,
    [runId, executionId],
  );
  return rowCount === 1;
}
