import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createAdvisoryLock } from './advisory_lock.ts';

/** Repeats a pass of the reconcilers. */
export interface ReconcileLoop {
  /** Starts the first pass at once. */
  start(): void;
  /** Waits for the pass that is running. */
  stop(): Promise<void>;
}

/** Key of the reconciler's advisory lock in the control database. */
const reconcilerLock = 5_140_517;

/**
 * Every worker process has a loop; an advisory lock lets one of them work. It does not run in Temporal, since it repairs
 * what was lost with Temporal. A failed pass is logged; the next one repeats it.
 */
export function createReconcileLoop({
  pool,
  pass,
  settings,
  logger,
}: {
  readonly pool: Pool;
  readonly pass: () => Promise<void>;
  readonly settings: Pick<Settings, 'EXPORTD_RECONCILE_INTERVAL'>;
  readonly logger: Logger;
}): ReconcileLoop {
  const lock = createAdvisoryLock(pool, reconcilerLock);
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const runOnce = async (): Promise<void> => {
    try {
      if (await lock.tryAcquire()) await pass();
    } catch (error) {
      logger.warn({ err: error }, 'The reconciler could not finish its pass. Trying again.');
    }
    if (!stopped) timer = setTimeout(start, settings.EXPORTD_RECONCILE_INTERVAL);
  };
  const start = (): void => {
    running = runOnce();
  };
  return {
    start,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
      lock.release();
    },
  };
}
