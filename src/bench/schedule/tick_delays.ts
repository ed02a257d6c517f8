import type { Policies } from '../../decisions/policies.ts';
import { delaysOf } from './delays.ts';
import type { TicksResult } from './result.ts';

/** A run of a tick, from the read model. */
export interface TickedRun {
  readonly id: string;
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly status: string;
  readonly manifest_key: string | null;
  readonly records_completed: number;
  /** Time of the event that created the run. */
  readonly created_at: string;
  readonly finished_at: string | null;
}

/** When a run is due: the end of its interval plus its jitter, in milliseconds. */
export const dueTimes =
  (interval: string, jitterMs: Policies['jitterMs']) =>
  (run: TickedRun): number =>
    Date.parse(run.data_interval_end) +
    jitterMs(run.batch_export_id, interval, { start: run.data_interval_start, end: run.data_interval_end });

/** The delays of runs. `firstTaskOf` returns the start time of a run's first workflow task. */
export function delaysOfRuns(
  runs: readonly TickedRun[],
  dueAt: (run: TickedRun) => number,
  firstTaskOf: (run: TickedRun) => number | undefined,
): Pick<TicksResult, 'due_to_created' | 'due_to_first_task' | 'due_to_completed'> {
  const after = (time: (run: TickedRun) => number | undefined) =>
    delaysOf(
      runs.flatMap((run) => {
        const at = time(run);
        return at === undefined ? [] : [at - dueAt(run)];
      }),
    );
  return {
    due_to_created: after(({ created_at }) => Date.parse(created_at)),
    due_to_first_task: after(firstTaskOf),
    due_to_completed: after(({ status, finished_at }) =>
      status === 'Completed' && finished_at !== null ? Date.parse(finished_at) : undefined,
    ),
  };
}
