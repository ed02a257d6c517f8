import type { TestDestination } from '../src/destination/destination_tests.ts';
import type { TestStep } from '../src/destination/bucket_test.ts';
import { withApplicationFailures } from '../src/failures/application_failures.ts';
import type { Logger } from '../src/telemetry/logger.ts';

/** Dependencies of the destination test's activities. */
export interface DestinationTestActivityDependencies {
  readonly testDestination: TestDestination;
  readonly logger: Logger;
}

export type DestinationTestActivities = ReturnType<typeof createDestinationTestActivities>;

/** The local activities of `batchExportDestinationTest`. A test takes seconds and must not queue behind exports. */
export const createDestinationTestActivities = ({
  testDestination,
  logger,
}: DestinationTestActivityDependencies) =>
  withApplicationFailures(
    {
      /** Tests a stored config, which thereby stays out of the history. */
      testDestination: async ({ test_id }: { readonly test_id: string }): Promise<readonly TestStep[]> =>
        testDestination(test_id),
    },
    logger,
  );
