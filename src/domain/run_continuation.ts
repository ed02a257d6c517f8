import type { Model } from './batch_export.ts';
import { requireActive } from './run.ts';
import type { ExistingRun, RunProgress, RunState } from './run_state.ts';
import type { RunEvent } from './run_events.ts';

/** The events of a continue-as-new: `closed` ends the current run, `created` creates the run that continues it. */
export interface RunContinuation {
  readonly closed: RunEvent;
  readonly created: RunEvent;
}

/**
 * Continues an active run as new: the next run inherits its progress.
 * @throws RunEnded when the run is not active.
 */
export function decideContinuation(
  state: RunState,
  ids: { readonly run_id: string; readonly next_run_id: string; readonly cursor: string },
): RunContinuation {
  const run = requireActive(state);
  return {
    closed: { type: 'RunContinuedAsNew', data: { next_run_id: ids.next_run_id, cursor: ids.cursor } },
    created: {
      type: 'RunCreated',
      data: {
        ...run.spec,
        continues_run_id: ids.run_id,
        inherited: { run_id: ids.run_id, progress: progressOf(run) },
      },
    },
  };
}

/**
 * Returns the progress that an automatic retry can resume from; undefined if it has to start over. It starts over
 * - under another model or config,
 * - when the barrier timed out, because an open transaction may have added rows before the cursor, and
 * - when publishing was claimed, because the manifest may exist and its generation is used up.
 */
export function progressForRetry(
  state: RunState,
  definition: { readonly model: Model; readonly config_version: number },
): RunProgress | undefined {
  if (state.status === 'Absent' || state.publish_started_at !== null || !state.settled) return undefined;
  if (state.ranges.every(({ upload, files }) => upload === null && files.count === 0)) return undefined;
  const { model, config_version } = state.spec;
  if (model !== definition.model || config_version !== definition.config_version) return undefined;
  return { ...progressOf(state), records_total_count: null, source_fingerprint: null, replacement: null };
}

const progressOf = (run: ExistingRun): RunProgress => ({
  records_total_count: run.records_total_count,
  source_fingerprint: run.source_fingerprint,
  read_since: run.read_since,
  settled: run.settled,
  unsettled_barrier: run.unsettled_barrier,
  replacement: run.replacement,
  generation: run.generation,
  late_generations: run.late_generations,
  encoder: run.encoder,
  ranges: run.ranges,
  rejected_file: run.rejected_file,
});
