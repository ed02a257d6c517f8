import { DestinationError } from './destination.ts';
import type { TestResult, TestStep } from './test_result.ts';

/** A step of a destination test. */
export interface PlannedStep {
  readonly name: string;
  readonly description: string;
  /** Names of earlier steps that this one depends on. */
  readonly needs: readonly string[];
  /** Whether it cleans up after other steps. It runs after the timeout too; its requests have their own timeout. */
  readonly isCleanUp?: true;
  /**
   * Returns how the store behaves, if it found out something.
   * @throws DestinationError whose message says what is wrong and what it means for exports
   */
  readonly run: () => Promise<string | undefined>;
}

/** A problem that exports can work around: the step fails, but dependent steps run. */
export class ToleratedError extends Error {
  override readonly name = 'ToleratedError';
}

const skipped = { status: 'Skipped', message: null } as const;

/**
 * Runs steps in order. A step is skipped when a step that it needs has failed. After the timeout only clean-up steps
 * run.
 * @param timeoutMs limit for all steps together; then the signal passed to `plan` is aborted
 */
export async function runTestSteps(
  timeoutMs: number,
  plan: (signal: AbortSignal) => readonly PlannedStep[],
): Promise<readonly TestStep[]> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const failed = new Set<string>();
  const steps: TestStep[] = [];
  for (const { name, description, needs, isCleanUp, run } of plan(deadline)) {
    const canRun = (isCleanUp ?? !deadline.aborted) && needs.every((need) => !failed.has(need));
    const { usable, ...result } = canRun ? await runStep(run, deadline) : { ...skipped, usable: false };
    if (!usable) failed.add(name);
    steps.push({ name, description, result });
  }
  return steps;
}

async function runStep(
  run: PlannedStep['run'],
  deadline: AbortSignal,
): Promise<TestResult & { readonly usable: boolean }> {
  const failed = (message: string, usable: boolean) => ({ status: 'Failed', message, usable }) as const;
  try {
    const details = await run();
    return { status: 'Passed', message: null, ...(details !== undefined && { details }), usable: true };
  } catch (error) {
    if (error instanceof ToleratedError) return failed(error.message, true);
    if (error instanceof DestinationError) return failed(error.message, false);
    if (!deadline.aborted) throw error;
    return failed(
      'The destination did not respond in time (EXPORTD_DESTINATION_TEST_TIMEOUT); check its address and whether it is running.',
      false,
    );
  }
}
