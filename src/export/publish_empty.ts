import type { Settings } from '../config/settings.ts';
import { classifyError } from '../failures/classify_error.ts';
import { publishManifest, type PublishDependencies } from './publish_manifest.ts';

/**
 * Publishes a run without rows in the control worker, which halves the cost of such a run.
 * @returns false when an export worker has to publish it
 * @throws RunEnded, and the signal's reason once it is aborted
 */
export type PublishEmpty = (runId: string, signal: AbortSignal) => Promise<boolean>;

/**
 * Few at a time, and each with a short timeout: a bucket that does not respond can only occupy these slots. Runs that find
 * no free slot, or fail here, are published by the export workers, which have the time to retry.
 */
export function createEmptyPublisher(
  dependencies: PublishDependencies,
  {
    EXPORTD_EMPTY_PUBLISH_SLOTS: slots,
    EXPORTD_EMPTY_PUBLISH_TIMEOUT: timeoutMs,
  }: Pick<Settings, 'EXPORTD_EMPTY_PUBLISH_SLOTS' | 'EXPORTD_EMPTY_PUBLISH_TIMEOUT'>,
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
