import type { TestDestination } from '../src/destination/destination_tests.ts';
import type { TestStep } from '../src/destination/bucket_test.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities } from './run_step.ts';

export type DestinationTestActivities = ReturnType<typeof createDestinationTestActivities>;

/** The local activities of `batchExportDestinationTest`. A test takes seconds and must not queue behind exports. */
export const createDestinationTestActivities = ({
  testDestination,
  logger,
}: {
  readonly testDestination: TestDestination;
  readonly logger: Logger;
}) =>
  wrapActivities(
    { logger },
    {
      /** Tests a stored config, which thereby stays out of the history. */
      testDestination: async (_, { test_id }: { readonly test_id: string }): Promise<readonly TestStep[]> =>
        testDestination(test_id),
    },
  );
