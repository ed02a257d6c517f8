import type { ProbeWait } from '../destination/destination.ts';
import type { OpenDestination } from '../destination/open_destination.ts';
import type { PreparedRun } from '../decisions/deferred_steps.ts';
import { requireActive } from '../domain/run.ts';
import { classifyError } from '../failures/classify_error.ts';
import type { ExportDependencies } from './export_context.ts';
import { exportInterval } from './export_interval.ts';
import type { PerExportLimit } from './per_export_limit.ts';
import { publishManifest } from './publish.ts';
import type { SmallRun } from './small_run.ts';

/**
 * Exports and publishes a small run in the control worker, which has just counted it: an activity of an export worker and a
 * second workflow task cost as much as the run itself.
 * @param small the run as it was counted, if this process has done that
 * @returns false when an export worker has to do it
 * @throws RunEnded, and the signal's reason once it is aborted
 */
export type CompleteSmallRun = (runId: string, signal: AbortSignal, small?: SmallRun) => Promise<boolean>;

/** How long a small run may take, and wait for others of its export meanwhile, in milliseconds. Shorter than a workflow task. */
const smallRunLimits = { waitMs: 1_000, timeoutMs: 5_000 };

/** What a small run cannot do, or has no time for. An export worker does it. */
class NotSmall extends Error {
  override readonly name = 'NotSmall';
}

/**
 * Each has a short timeout: a bucket that does not respond can only occupy the turns of its project, for seconds. Runs that need
 * more than one request for their file, or fail here, are completed by the export workers, which have the time to retry, and find
 * in the journal what was done.
 */
export function createSmallRunCompleter(
  dependencies: ExportDependencies,
  { waitMs, timeoutMs } = smallRunLimits,
): CompleteSmallRun {
  const { recorder, openDestination, perExportLimit } = dependencies;
  const work = async (runId: string, prepared: PreparedRun, signal: AbortSignal): Promise<boolean> => {
    if (requireActive(prepared.run).records_total_count === 0) {
      await publishManifest(dependencies, runId, signal, prepared);
      return true;
    }
    const oneRequest = {
      openDestination: forWholeFiles(openDestination, { runId, signal }),
      perExportLimit: withoutLongWait(perExportLimit, waitMs),
    };
    const progress = { rows: 0 };
    const call = { dependencies: { ...dependencies, ...oneRequest }, runId, progress, signal, prepared };
    return (await exportInterval(call, { publishes: true })).finished;
  };
  return async (runId, signal, small) => {
    const prepared = small ?? (await recorder.readAmongOthers(runId));
    if (prepared.run.status === 'Completed') return true;
    try {
      return await withinTime(timeoutMs, signal, (limited) => work(runId, prepared, limited));
    } catch (error) {
      signal.throwIfAborted();
      if (classifyError(error).type === 'RunEnded') throw error;
      return false;
    }
  };
}

const notInTime = (): NotSmall => new NotSmall('The run takes longer than a small one may.');

/** Does work whose signal is aborted after so many milliseconds. Unlike `AbortSignal.timeout` it leaves no timer behind. */
async function withinTime<Result>(
  timeoutMs: number,
  signal: AbortSignal,
  work: (limited: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(notInTime()), timeoutMs);
  try {
    return await work(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** Opens destinations that write a file in one request, and refuses to start an upload there. */
const forWholeFiles =
  (open: OpenDestination, waiting: ProbeWait): OpenDestination =>
  async (spec, onError) => {
    const destination = await open(spec, onError, waiting);
    if (!destination.writesWholeFiles) {
      destination.close();
      throw new NotSmall('The store needs an upload for each file.');
    }
    // What every upload begins with.
    const isTaken = () => Promise.reject(new NotSmall('The file has more than one part.'));
    return { ...destination, isTaken };
  };

/** Lets a run wait only a moment while other runs of its export have all permits. */
const withoutLongWait = ({ acquire }: PerExportLimit, waitMs: number): PerExportLimit => ({
  acquire: (id, signal) => withinTime(waitMs, signal, (limited) => acquire(id, limited)),
});
