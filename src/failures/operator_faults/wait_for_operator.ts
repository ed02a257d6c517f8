import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { operatorFaultDetails } from '../../contract/operator_fault.ts';
import { operatorFaultOf, type Activity } from '../application_failures.ts';
import { nextRetryDelayOf } from '../next_retry_delay.ts';
import type { OperatorFault } from './fault_pacing.ts';
import type { OperatorFaults } from './operator_faults.ts';

/** What the wait needs to know of the running attempt. Tests may leave it out. */
export interface AttemptContext {
  readonly info?: { readonly attempt: number; readonly isLocal?: boolean };
}

/** An activity of a run. */
type RunActivity = (...input: readonly { readonly run_id: string }[]) => Promise<unknown>;

/**
 * Wraps activities of a run so that they wait for the operator: after an operator's fault, Temporal starts the next attempt
 * when it is due, which costs no slot and no event of the history. A local activity cannot wait like that. It fails, and
 * its workflow calls it again as an ordinary one.
 */
export function waitForOperator<Activities extends Record<string, Activity>>(
  faults: OperatorFaults,
  context: () => AttemptContext,
  activities: Activities,
): Activities {
  const wrap =
    (activity: Activity): RunActivity =>
    async (...input) => {
      const runId = input[0]?.run_id ?? '';
      const { attempt = 1, isLocal = false } = context().info ?? {};
      const waiting = faults.admit(runId);
      if (waiting) throw failureOf(waiting.fault, waiting.wait_ms, isLocal);
      let isFixed = false;
      let fault: OperatorFault | undefined;
      try {
        const result = await (activity as RunActivity)(...input);
        isFixed = true;
        return result;
      } catch (error) {
        fault = operatorFaultOf(error);
        if (!fault) throw error;
        throw failureOf(fault, await faults.failed(runId, fault, attempt), isLocal);
      } finally {
        if (!fault) await faults.resumed(runId, { isFixed, isRetry: attempt > 1 });
      }
    };
  const wrapped = Object.entries(activities).map(([name, activity]) => [name, wrap(activity)] as const);
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(wrapped) as unknown as Activities;
}

const failureOf = ({ type, message }: OperatorFault, delayMs: number, isLocal: boolean) =>
  ApplicationFailure.create({
    type,
    message,
    details: [operatorFaultDetails],
    nonRetryable: isLocal,
    nextRetryDelay: nextRetryDelayOf(delayMs),
    // One line of the log reports the fault, not one for each attempt of each run.
    category: ApplicationFailureCategory.BENIGN,
  });
