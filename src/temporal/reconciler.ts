import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createLockHolder } from './lock_holder.ts';

/** Compares what the journal says should run with what Temporal runs, again and again. */
export interface Reconciler {
  /** Begins with a pass at once. */
  start(): void;
  stop(): Promise<void>;
}

/** Marks the reconciler among the advisory locks of the control database. */
const reconcilerLock = 5_140_517;

/**
 * Runs in every worker process, of which one at a time does the work. Not in Temporal, or it would end with what it
 * mends. A pass that fails, because the database or Temporal is down, is logged and tried again.
 */
export function createReconciler({
  pool,
  pass,
  settings,
  logger,
}: {
  readonly pool: Pool;
  readonly pass: () => Promise<void>;
  readonly settings: Pick<Settings, 'EXPORTD_RECONCILE_INTERVAL_MS'>;
  readonly logger: Logger;
}): Reconciler {
  const lock = createLockHolder(pool, reconcilerLock);
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const once = async (): Promise<void> => {
    try {
      if (await lock.hold()) await pass();
    } catch (error) {
      logger.warn({ err: error }, 'The reconciler could not finish its pass; it tries again.');
    }
    if (!stopped) timer = setTimeout(begin, settings.EXPORTD_RECONCILE_INTERVAL_MS);
  };
  const begin = (): void => {
    running = once();
  };
  return {
    start: begin,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
      lock.release();
    },
  };
}
