import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createFaultPacing, type FaultPacing, type FaultWait, type OperatorFault } from './fault_pacing.ts';
import { storeFault, storeResumption } from './fault_store.ts';

/** What steps of runs report about operator's faults. */
export interface OperatorFaults {
  /** The fault that a run has to wait for without trying; undefined when it may try. */
  admit(runId: string): FaultWait | undefined;
  /** Records that a run tried and failed, and returns after how many milliseconds it tries again. Never rejects. */
  failed(runId: string, fault: OperatorFault, attempt: number): Promise<number>;
  /**
   * Records that a step of a run succeeded (`isFixed`), or failed for another reason. `isRetry`: an earlier attempt may
   * have failed in another process. Never rejects.
   */
  resumed(runId: string, of: { readonly isFixed: boolean; readonly isRetry: boolean }): Promise<void>;
}

/** Creates the faults of a process. The log has one line when a fault is found, and one when it is fixed. */
export function createOperatorFaults(
  pool: Pool,
  settings: Parameters<typeof createFaultPacing>[0] & Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL'>,
  logger: Logger,
  pacing: FaultPacing = createFaultPacing(settings),
): OperatorFaults {
  const store = async (runId: string, write: () => Promise<void>): Promise<void> => {
    await write().catch(() =>
      logger.warn({ run_id: runId }, "An operator's fault could not be stored in the control database."),
    );
  };
  return {
    admit: (runId) => pacing.admit(runId),
    failed: async (runId, fault, attempt) => {
      const { wait_ms, isNew } = pacing.failed(runId, fault, attempt);
      if (isNew)
        logger.error(
          { operator_fault: fault.type },
          `Runs of all exports that need this wait until the operator has fixed it: ${fault.message}`,
        );
      await store(runId, () => storeFault(pool, runId, fault));
      return wait_ms;
    },
    resumed: async (runId, { isFixed, isRetry }) => {
      const fault = isFixed ? pacing.succeeded(runId) : pacing.leave(runId);
      if (fault && isFixed)
        logger.info({ operator_fault: fault.type }, `Runs continue. This is fixed: ${fault.message}`);
      if (fault || isRetry) await store(runId, () => storeResumption(pool, runId));
    },
  };
}
