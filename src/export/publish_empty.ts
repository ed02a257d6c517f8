import type { Settings } from '../config/settings.ts';
import { classifyError } from '../failures/classify_error.ts';
import { publishManifest, type PublishDependencies } from './publish_manifest.ts';

/**
 * Publishes a run without rows within the step that found it so, which costs half of what a step of its own on the queue
 * of the exports does.
 * @returns false when that is left to such a step.
 * @throws RunEnded when the run has ended.
 */
export type PublishEmpty = (runId: string) => Promise<boolean>;

/**
 * A few at once and each for a short time: a bucket that does not answer keeps those few places busy, and every other
 * run goes by the queue of the exports meanwhile, as this one does then.
 */
export function createEmptyPublisher(
  dependencies: PublishDependencies,
  {
    EXPORTD_EMPTY_PUBLISH_SLOTS: places,
    EXPORTD_EMPTY_PUBLISH_TIMEOUT: patienceMs,
  }: Pick<Settings, 'EXPORTD_EMPTY_PUBLISH_SLOTS' | 'EXPORTD_EMPTY_PUBLISH_TIMEOUT'>,
): PublishEmpty {
  let taken = 0;
  return async (runId) => {
    if (taken >= places) return false;
    taken += 1;
    try {
      await publishManifest(dependencies, runId, AbortSignal.timeout(patienceMs));
      return true;
    } catch (error) {
      if (classifyError(error).type === 'RunEnded') throw error;
      // Whether it will do at another time is for the step of its own to find out, which has the time.
      return false;
    } finally {
      taken -= 1;
    }
  };
}
