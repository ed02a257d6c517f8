import {
  hasAdvanced,
  type OpenedRun,
  readOpenedRuns,
  readUnsettledRuns,
  recordBarrier,
  recordSettled,
  type SettlingDecision,
  type UnsettledRun,
} from '../decisions/unsettled_runs.ts';
import { isDatabaseUnavailable, isTransient } from '../journal/database.ts';
import { compareInterval } from './compare_intervals.ts';
import { startBackfill } from './start_backfill.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** The result of a check, which is stored in the workflow's history. */
export interface BarriersOutcome {
  /** Runs whose barrier was checked. */
  readonly checked: number;
  /** Those of them whose barrier has opened. */
  readonly opened: number;
  readonly has_more: false;
}

/**
 * Checks the barriers of all runs that were exported while transactions of the source were open, however long ago. One
 * list of the open transactions serves all of them.
 * @throws the first error of a run that could not be recorded, after all others
 */
export async function checkBarriers(
  { journal, source }: Pick<MaintenanceDependencies, 'journal' | 'source'>,
  signal: AbortSignal,
): Promise<BarriersOutcome> {
  let checked = 0;
  let opened = 0;
  let last: UnsettledRun | undefined;
  const errors: unknown[] = [];
  for (;;) {
    const runs = await readUnsettledRuns(journal.pool, last);
    last = runs.at(-1);
    if (!last) break;
    const checks = await source.checkBarriers(runs.map(({ barrier }) => barrier));
    for (const [index, run] of runs.entries()) {
      const state = checks[index]?.state;
      if (!state || !hasAdvanced(run, state)) continue;
      signal.throwIfAborted();
      try {
        await recordBarrier(journal, run, state);
        if (state.phase === 'open') opened += 1;
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        errors.push(error);
      }
    }
    checked += runs.length;
  }
  if (errors.length > 0) throw errors[0];
  return { checked, opened, has_more: false };
}

/** The result of a call, which is stored in the workflow's history. */
export interface SettlingResult {
  /** Intervals that were decided. */
  readonly settled: number;
  readonly has_more: boolean;
}

/** Intervals in one call. */
const batchSize = 100;
/** After this time a call starts no further interval, so that other exports get their turn. */
const turnMs = 45_000;

/**
 * Follows up the export's runs whose transactions have ended since. They are compared with the source, and exported again
 * if rows arrived late.
 * @throws the first error of a run that could not be followed up, after all others
 */
export async function settleRuns(
  dependencies: MaintenanceDependencies,
  batchExportId: string,
  signal: AbortSignal,
): Promise<SettlingResult> {
  const opened = await readOpenedRuns(dependencies.journal.pool, batchExportId, batchSize);
  const turnEnd = performance.now() + turnMs;
  let done = 0;
  let settled = 0;
  const errors: unknown[] = [];
  for (const run of opened) {
    if (performance.now() > turnEnd) break;
    done += 1;
    try {
      if (await settleRun(dependencies, run, signal)) settled += 1;
    } catch (error) {
      if (signal.aborted || isTransient(error)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
  return { settled, has_more: settled > 0 && (done < opened.length || opened.length === batchSize) };
}

/** Follows up one run. Returns whether anything was recorded. */
async function settleRun(
  dependencies: MaintenanceDependencies,
  run: OpenedRun,
  signal: AbortSignal,
): Promise<boolean> {
  const decision = run.is_expired
    ? withoutRetry('not_exported_again')
    : await compare(dependencies, run, signal);
  if (!decision) return false;
  const { is_recorded, repair_id } = await recordSettled(dependencies.journal, run, decision);
  if (repair_id !== null) await startBackfill(dependencies, repair_id);
  return is_recorded;
}

const exportAgain: SettlingDecision = { outcome: 'exported_again', requests_retry: true };
const withoutRetry = (outcome: SettlingDecision['outcome']): SettlingDecision => ({
  outcome,
  requests_retry: false,
});

/**
 * Compares an interval; undefined if it cannot be compared now. Persons whose files have no keys are exported again once:
 * while other transactions are always open, repetitions would never end.
 */
async function compare(
  dependencies: MaintenanceDependencies,
  { run_id, model, is_repeated }: OpenedRun,
  signal: AbortSignal,
): Promise<SettlingDecision | undefined> {
  const compared = await compareInterval(dependencies, run_id, signal);
  if (compared?.result === 'not recorded') return undefined;
  if (compared?.result === 'exported again') return withoutRetry('exported_again');
  // What an earlier comparison found does not count: its rows may no longer be comparable.
  switch (compared?.comparison?.outcome) {
    case 'equal':
      return withoutRetry('same_rows');
    case 'source_expired':
      return withoutRetry('source_expired');
    case 'rows_missing':
      // Late rows may be hidden by more deleted ones. The run compares keys and is held if any is missing.
      return compared.keys_compared ? withoutRetry('no_late_rows') : exportAgain;
    case 'rows_added':
    case 'both':
      return withoutRetry('not_exported_again');
    case undefined:
      return model === 'persons' && is_repeated ? withoutRetry('not_exported_again') : exportAgain;
  }
}
