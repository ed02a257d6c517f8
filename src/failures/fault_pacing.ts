/** Spreads the attempts of runs that wait for the same fault of the operator. */
import type { Settings } from '../config/settings.ts';
import { BoundedMap } from '../concurrency/bounded_map.ts';
import { causeOf, type OperatorFault } from './operator_faults.ts';

/** An operator's fault that a run waits for, and when its step is tried again. */
export interface FaultWait {
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
  { now, random }: { now: () => number; random: () => number } = {
    // Not the time of day, which may be set back by hours.
    now: () => performance.now(),
    random: Math.random,
  },
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
     * Records that a run tried for the `attempt`th time, counted from 1, and failed.
     */
    failed: (runId: string, fault: OperatorFault, attempt: number): FaultWait => {
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
      return { fault, wait_ms };
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
