import type { CircuitBreaker } from '../destination/circuits/circuit_breaker.ts';
import { toApplicationFailure, type Activity } from './application_failures.ts';

/** An activity of a run. */
type RunActivity = (...input: readonly { readonly run_id: string }[]) => Promise<unknown>;

/**
 * Wraps activities of a run so that an attempt whose destination this process knows to be unavailable fails at once, without
 * a statement. A thousand waiting runs look every half minute.
 * @param circuits none in tests
 */
export function waitForDestination<Activities extends Record<string, Activity>>(
  circuits: Pick<CircuitBreaker, 'waitOf'> | undefined,
  activities: Activities,
): Activities {
  const wrap =
    (activity: Activity): RunActivity =>
    async (...input) => {
      const waiting = circuits?.waitOf(input[0]?.run_id ?? '');
      if (waiting) throw toApplicationFailure(waiting);
      return (activity as RunActivity)(...input);
    };
  const wrapped = Object.entries(activities).map(([name, activity]) => [name, wrap(activity)] as const);
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(wrapped) as unknown as Activities;
}
