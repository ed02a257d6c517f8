import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  BoundedMap,
  createCircuitBreaker,
  createCircuitStore,
  type Circuits,
  type ProbeSettings,
} from './circuits.ts';
import { failureOf, operatorFaultOf, toApplicationFailure } from './classify_error.ts';
import { causeOf, storeFault, storeResumption, type OperatorFault } from './operator_faults.ts';

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

/**
 * Creates the outages of a process. The log has one line when an operator's fault is found, and one when it is fixed.
 */
export function createOutages(pool: Pool, settings: OutageSettings, logger: Logger): Outages {
  const circuits = createCircuitBreaker(createCircuitStore(pool, settings), settings);
  const pacing = createFaultPacing(settings);
  const store = async (runId: string, write: () => Promise<void>): Promise<void> => {
    await write().catch(() =>
      logger.warn({ run_id: runId }, "An operator's fault could not be stored in the control database."),
    );
  };
  /** Records that a run tried and failed. Returns after how many milliseconds it tries again. */
  const failed = async ({ runId, number }: RunAttempt, fault: OperatorFault): Promise<number> => {
    const { wait_ms, isNew } = pacing.failed(runId, fault, number);
    if (isNew)
      logger.error(
        { operator_fault: fault.type },
        `Runs of all exports that need this wait until the operator has fixed it: ${fault.message}`,
      );
    await store(runId, () => storeFault(pool, runId, fault));
    return wait_ms;
  };
  /** Records that a run tried and succeeded (`isFixed`), or failed for another reason. */
  const resumed = async ({ runId, number }: RunAttempt, isFixed: boolean): Promise<void> => {
    const fault = isFixed ? pacing.succeeded(runId) : pacing.leave(runId);
    if (fault && isFixed)
      logger.info({ operator_fault: fault.type }, `Runs continue. This is fixed: ${fault.message}`);
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

/** An operator's fault that a run waits for, and when its step is tried again. */
interface FaultWait {
  readonly fault: OperatorFault;
  readonly wait_ms: number;
}

interface PacedFault {
  readonly fault: OperatorFault;
  /** Consecutive attempts that were due and failed. */
  failures: number;
  nextTryAt: number;
}

/** Bounds of the memory of a process. A forgotten run tries once more than necessary. */
const maxWaitingRuns = 10_000;
const maxFaults = 1_000;
/** Waiting runs come back at different times: this many milliseconds apart, but at most one interval late. */
const spreadMsPerRun = 5;

/**
 * Faults that another worker may not have, and that reach no server: each run tries again on its own, and soon, because
 * Temporal may give it to another worker.
 */
const unpacedTypes: ReadonlySet<string> = new Set(['SecretUnreadable']);

/**
 * Decides which of the waiting runs of a process tries again. Of all runs that wait for one operator's fault, one tries at a
 * time; the others fail again without reaching a server. The first attempts follow each other quickly, in case the fault is
 * a short one. Times are in milliseconds.
 */
export function createFaultPacing(
  settings: Pick<Settings, 'EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL' | 'EXPORTD_ACTIVITY_RETRY_INITIAL'>,
  { now, random }: { now: () => number; random: () => number } = { now: Date.now, random: Math.random },
) {
  const interval = settings.EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL;
  const initial = settings.EXPORTD_ACTIVITY_RETRY_INITIAL;
  const faults = new BoundedMap<string, PacedFault>(maxFaults);
  const causes = new BoundedMap<string, string>(maxWaitingRuns);
  const waitOf = ({ nextTryAt }: PacedFault): number =>
    Math.ceil(
      Math.max(1, nextTryAt - now()) + random() * Math.min(interval, initial + causes.size * spreadMsPerRun),
    );
  const intervalAfter = (failures: number): number =>
    Math.min(interval, initial * 2 ** Math.min(failures - 1, 20));
  const forget = (runId: string): PacedFault | undefined => {
    const known = faults.get(causes.get(runId) ?? '');
    causes.delete(runId);
    return known;
  };
  return {
    /** The fault that a run has to wait for without trying; undefined when it may try. */
    admit: (runId: string): FaultWait | undefined => {
      const waiting = faults.get(causes.get(runId) ?? '');
      if (!waiting) {
        causes.delete(runId);
        return undefined;
      }
      if (unpacedTypes.has(waiting.fault.type)) return undefined;
      if (now() < waiting.nextTryAt) return { fault: waiting.fault, wait_ms: waitOf(waiting) };
      // Others wait until this attempt has ended, or has hung for as long.
      waiting.nextTryAt = now() + intervalAfter(waiting.failures + 1);
      return undefined;
    },
    /**
     * Records that a run tried for the `attempt`th time, counted from 1, and failed. `isNew`: this process did not know the
     * fault.
     */
    failed: (
      runId: string,
      fault: OperatorFault,
      attempt: number,
    ): FaultWait & { readonly isNew: boolean } => {
      const cause = causeOf(fault);
      const known = faults.get(cause);
      const isDue = causes.get(runId) === cause || !known;
      const paced = known ?? { fault, failures: 0, nextTryAt: 0 };
      if (isDue) {
        paced.failures += 1;
        paced.nextTryAt = now() + intervalAfter(paced.failures);
      }
      faults.set(cause, paced);
      causes.set(runId, cause);
      const wait_ms = unpacedTypes.has(fault.type)
        ? Math.ceil(intervalAfter(attempt) * (1 + random()))
        : waitOf(paced);
      return { fault, wait_ms, isNew: known === undefined };
    },
    /** Records that a waiting run tried and succeeded, which lets all others try. Returns the fault that it waited for. */
    succeeded: (runId: string): OperatorFault | undefined => {
      const known = forget(runId);
      if (known) faults.delete(causeOf(known.fault));
      return known?.fault;
    },
    /** Records that a run tried and failed for another reason: its former fault may still be there. */
    leave: (runId: string): OperatorFault | undefined => forget(runId)?.fault,
  };
}
