import type { Model } from './batch_export.ts';
import { requireActive, type ExistingRun, type RunEvent, type RunProgress, type RunState } from './run.ts';

/** The two events of a handover: the first closes the run that was worked on, the second opens the one that goes on. */
export interface RunContinuation {
  readonly closed: RunEvent;
  readonly created: RunEvent;
}

/**
 * Hands an export that is under way over to a fresh run, which goes on where this one stands and counts on from it.
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
 * What an automatic retry may go on with; undefined when it has to start anew. That is so under another model or config,
 * when a transaction may have added rows in front of the cursor (the barrier gave up), and when the manifest may have
 * been put already, since its generation is taken then.
 */
export function progressForRetry(
  state: RunState,
  definition: { readonly model: Model; readonly config_version: number },
): RunProgress | undefined {
  if (state.status === 'Absent' || state.publish_started_at !== null || !state.settled) return undefined;
  if (state.ranges.every(({ upload, files }) => upload === null && files.length === 0)) return undefined;
  const { model, config_version } = state.spec;
  if (model !== definition.model || config_version !== definition.config_version) return undefined;
  return { ...progressOf(state), records_total_count: null };
}

const progressOf = (run: ExistingRun): RunProgress => ({
  records_total_count: run.records_total_count,
  settled: run.settled,
  generation: run.generation,
  late_generations: run.late_generations,
  encoder: run.encoder,
  ranges: run.ranges,
  rejected_file: run.rejected_file,
});
