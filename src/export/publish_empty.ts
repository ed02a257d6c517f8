import { classifyError } from '../failures/classify_error.ts';
import { type PublishDependencies, publishManifest } from './publish.ts';

/**
 * Publishes a run without rows in the control worker, which halves the cost of such a run.
 * @returns false when an export worker has to publish it
 * @throws RunEnded, and the signal's reason once it is aborted
 */
export type PublishEmpty = (runId: string, signal: AbortSignal) => Promise<boolean>;

/** Intervals without rows that a worker publishes at a time outside its export slots, and how long one may take. */
const emptyPublishLimits = { slots: 8, timeoutMs: 1_500 };

/**
 * Few at a time, and each with a short timeout: a bucket that does not respond can only occupy these slots. Runs that find
 * no free slot, or fail here, are published by the export workers, which have the time to retry.
 */
export function createEmptyPublisher(
  dependencies: PublishDependencies,
  { slots, timeoutMs } = emptyPublishLimits,
): PublishEmpty {
  let usedSlots = 0;
  return async (runId, signal) => {
    if (usedSlots >= slots) return false;
    usedSlots += 1;
    try {
      await publishManifest(dependencies, runId, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (classifyError(error).type === 'RunEnded') throw error;
      return false;
    } finally {
      usedSlots -= 1;
    }
  };
}
