/** Outages of what an attempt needs: how long a run waits for each. */
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import { createCircuitStore, type ProbeSettings } from './circuit_store.ts';
import { type Circuits, createCircuitBreaker } from './circuits.ts';
import { failureOf, operatorFaultOf, toApplicationFailure } from './classify_error.ts';
import { createFaultPacing, type FaultWait } from './fault_pacing.ts';
import { type OperatorFault, storeFault, storeResumption } from './operator_faults.ts';

type OutageSettings = ProbeSettings &
  Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_ACTIVITY_RETRY_INITIAL'>;

/** One attempt of a step of a run. */
interface RunAttempt {
  readonly runId: string;
  /** Counted from 1. */
  readonly number: number;
  /** A local activity cannot wait for its next attempt: it fails, and its workflow calls it as an ordinary one. */
  readonly isLocal: boolean;
  /** Whether it sends requests to the destination. */
  readonly needsDestination: boolean;
}

/**
 * What runs wait for: a destination that does not respond, or something that the operator has to fix. All runs with the same
 * cause wait, and one tries. The others fail without reaching a server, with the time of their next attempt, which Temporal
 * keeps without a slot and without an event of the history.
 *
 * | cause                | known to                                   | who tries                        | ends                   |
 * | -------------------- | ------------------------------------------ | -------------------------------- | ---------------------- |
 * | circuit              | all workers, by a row of each destination  | a probe of the leased worker     | with its response      |
 * | operator's fault     | each worker: it may concern only that one  | one waiting run of each worker   | with that run's success |
 */
export interface Outages {
  /** Whether destinations respond. `openDestination` asks before it sends anything. */
  readonly circuits: Circuits;
  /**
   * Runs an attempt, unless its run waits for a cause that this process knows. Records whether it ended with an operator's
   * fault; the circuits are recorded where the requests are sent.
   * @throws ApplicationFailure, with the time of the next attempt while the run waits
   */
  attempt<Result>(attempt: RunAttempt, work: () => Promise<Result>): Promise<Result>;
}

/** Creates the outages of a process. Of all processes, one logs when an outage begins, and one when it ends. */
export function createOutages(pool: Pool, settings: OutageSettings, logger: Logger): Outages {
  const circuits = createCircuitBreaker(createCircuitStore(pool, settings, logger), settings);
  const pacing = createFaultPacing(settings);
  const store = async (runId: string, write: () => Promise<void>): Promise<void> => {
    await write().catch(() =>
      logger.warn({ run_id: runId }, "An operator's fault could not be stored in the control database."),
    );
  };
  /** Records that a run tried and failed. Returns after how many milliseconds it tries again. */
  const failed = async ({ runId, number }: RunAttempt, fault: OperatorFault): Promise<number> => {
    const { wait_ms } = pacing.failed(runId, fault, number);
    await store(runId, () => storeFault(pool, logger, runId, fault));
    return wait_ms;
  };
  /** Records that a run tried and succeeded (`isFixed`), or failed for another reason. */
  const resumed = async ({ runId, number }: RunAttempt, isFixed: boolean): Promise<void> => {
    const fault = isFixed ? pacing.succeeded(runId) : pacing.leave(runId);
    // An earlier attempt may have failed in another process.
    if (fault || number > 1) await store(runId, () => storeResumption(pool, runId));
  };
  return {
    circuits,
    attempt: async (attempt, work) => {
      const { runId, isLocal, needsDestination } = attempt;
      const failureOfWait = ({ fault, wait_ms }: FaultWait) =>
        failureOf({ ...fault, owner: 'operator', permanent: isLocal, retry_delay_ms: wait_ms });
      // The circuit first: the pacing lets one run try, and that one must not be turned away after it.
      const silent = needsDestination ? circuits.waitOf(runId) : undefined;
      if (silent) throw toApplicationFailure(silent);
      const known = pacing.admit(runId);
      if (known) throw failureOfWait(known);
      let fault: OperatorFault | undefined;
      let isFixed = false;
      try {
        const result = await work();
        isFixed = true;
        return result;
      } catch (error) {
        fault = operatorFaultOf(error);
        if (!fault) throw error;
        throw failureOfWait({ fault, wait_ms: await failed(attempt, fault) });
      } finally {
        if (!fault) await resumed(attempt, isFixed);
      }
    },
  };
}
