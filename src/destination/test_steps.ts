import { DestinationError } from './destination.ts';
import type { TestResult, TestStep } from './test_result.ts';

/** A step that can be taken. */
export interface PlannedStep {
  readonly name: string;
  readonly description: string;
  /** Names of earlier steps without which this one says nothing. */
  readonly needs: readonly string[];
  /** Whether it removes what others made, so that it is taken when the time is up too; it has a time limit of its own. */
  readonly cleansUp?: true;
  /** @throws DestinationError whose message says what is wrong and what it means for exports. */
  readonly run: () => Promise<void>;
}

/** A fault that exports live with: the step has failed, but what needs it is tried all the same. */
export class ToleratedError extends Error {
  override readonly name = 'TolerableFault';
}

const skipped = { status: 'Skipped', message: null } as const;

/**
 * Takes steps in order. One whose need has failed is skipped, and so are all but those that clean up when the time is up.
 * @param timeoutMs the longest that all steps may take together; then the signal that they are planned with is aborted.
 */
export async function takeTestSteps(
  timeoutMs: number,
  plan: (signal: AbortSignal) => readonly PlannedStep[],
): Promise<readonly TestStep[]> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const missing = new Set<string>();
  const taken: TestStep[] = [];
  for (const { name, description, needs, cleansUp, run } of plan(deadline)) {
    const possible = (cleansUp ?? !deadline.aborted) && needs.every((need) => !missing.has(need));
    const { usable, ...result } = possible ? await takeStep(run, deadline) : { ...skipped, usable: false };
    if (!usable) missing.add(name);
    taken.push({ name, description, result });
  }
  return taken;
}

async function takeStep(
  run: PlannedStep['run'],
  deadline: AbortSignal,
): Promise<TestResult & { readonly usable: boolean }> {
  const failed = (message: string, usable: boolean) => ({ status: 'Failed', message, usable }) as const;
  try {
    await run();
    return { status: 'Passed', message: null, usable: true };
  } catch (error) {
    if (error instanceof ToleratedError) return failed(error.message, true);
    if (error instanceof DestinationError) return failed(error.message, false);
    if (!deadline.aborted) throw error;
    return failed('The destination did not answer in time; check its address and whether it is up.', false);
  }
}
