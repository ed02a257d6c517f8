/** Why exportd paused an export or a backfill, and the failed runs that caused it, latest first. */
export interface AutoPause {
  readonly reason: 'repeated failures';
  readonly run_ids: readonly string[];
}

/** A run that ended Completed or Failed. Runs with another status neither cause nor prevent a pause. */
export interface TerminalRun {
  readonly run_id: string;
  readonly status: 'Completed' | 'Failed';
}

/**
 * Returns a pause if the last `limit` runs all Failed.
 * @param ends runs since the last unpause, latest first.
 * @param limit 0 to never pause.
 */
export function autoPauseAfter(ends: readonly TerminalRun[], limit: number): AutoPause | undefined {
  const last = ends.slice(0, limit);
  if (limit === 0 || last.length < limit || last.some(({ status }) => status !== 'Failed')) return undefined;
  return { reason: 'repeated failures', run_ids: last.map(({ run_id }) => run_id) };
}
