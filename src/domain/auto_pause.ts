/** Why exportd pauses something by itself, and the runs that led to it, the latest first. */
export interface AutoPause {
  readonly reason: 'repeated failures';
  readonly run_ids: readonly string[];
}

/** How a run ended, of those that count: others neither lead to a pause nor stand in its way. */
export interface TerminalRun {
  readonly run_id: string;
  readonly status: 'Completed' | 'Failed';
}

/**
 * Whether the last `limit` runs that count were all Failed.
 * @param ends the latest first, since the last unpause.
 * @param limit 0 for never.
 */
export function autoPauseAfter(ends: readonly TerminalRun[], limit: number): AutoPause | undefined {
  const last = ends.slice(0, limit);
  if (limit === 0 || last.length < limit || last.some(({ status }) => status !== 'Failed')) return undefined;
  return { reason: 'repeated failures', run_ids: last.map(({ run_id }) => run_id) };
}
