/** The result of a step of a destination test. The message is for the owner of the export. */
export interface TestResult {
  readonly status: 'Passed' | 'Failed' | 'Skipped';
  readonly message: string | null;
  /** How the store behaves, where the step found out something about it. */
  readonly details?: string;
}

/** A step of a destination test in API responses. */
export interface TestStep {
  readonly name: string;
  readonly description: string;
  readonly result: TestResult;
}
