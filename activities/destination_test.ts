import type { TestDestination } from '../src/destination/destination_tests.ts';
import type { TestStep } from '../src/destination/test_result.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { withFailures } from './failures.ts';

/** Which stored test; no config enters a history. */
export interface StoredTest {
  readonly test_id: string;
}

/** What a test's activity works with. */
export interface DestinationTestDependencies {
  readonly testDestination: TestDestination;
  readonly logger: Logger;
}

export type DestinationTestActivities = ReturnType<typeof createDestinationTestActivities>;

/** The local activity that tests a destination: it takes a few seconds and must not queue behind exports. */
export const createDestinationTestActivities = ({ testDestination, logger }: DestinationTestDependencies) =>
  withFailures(
    {
      testDestination: async ({ test_id }: StoredTest): Promise<readonly TestStep[]> =>
        testDestination(test_id),
    },
    logger,
  );
