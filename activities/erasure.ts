import type { Settings } from '../src/config/settings.ts';
import {
  advanceErasure,
  type ErasureDependencies,
  type ErasureStep,
} from '../src/maintenance/erase_persons.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

interface ErasureActivityDependencies extends ErasureDependencies {
  readonly settings: Settings;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type ErasureActivities = ReturnType<typeof createErasureActivities>;

/** The activity of `batchExportErasure`. Only workers open the ids that are erased. */
export function createErasureActivities(dependencies: ErasureActivityDependencies) {
  const { logger, context, settings } = dependencies;
  return wrapActivities(
    { logger, context, heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT },
    {
      /** Does the next part of an erasure; its id is all that the history has of it. */
      advanceErasure: async (
        { signal, progress },
        { erasure_id }: { readonly erasure_id: string },
      ): Promise<ErasureStep> => advanceErasure(dependencies, erasure_id, { signal, progress }),
    },
  );
}
