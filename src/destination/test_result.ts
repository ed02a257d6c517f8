/** What became of a step of a destination's test. The message is a sentence for the owner of the export. */
export interface TestResult {
  readonly status: 'Passed' | 'Failed' | 'Skipped';
  readonly message: string | null;
}

/** A step of a destination's test as the interface shows it. */
export interface TestStep {
  readonly name: string;
  readonly description: string;
  readonly result: TestResult;
}
