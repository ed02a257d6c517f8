import { removeTest, storeTest } from '../destination/destination_tests.ts';
import type { SealedConfig } from '../destination/sealed_config.ts';
import type { TestStep } from '../destination/test_result.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { DestinationTestClient, TestOutcome } from '../temporal/clients/destination_test_client.ts';
import { ApiError } from './api_error.ts';

/** What having a destination tested needs. */
export interface DestinationTestService {
  readonly pool: Pool;
  readonly destinationTests: DestinationTestClient;
  readonly logger: Logger;
}

const retryLater = { headers: { 'retry-after': '5' } };

/**
 * Has a config tested by a worker, which alone opens its secrets. Nothing stays stored.
 * @param owner what its secrets were sealed for.
 * @throws ApiError 503 when Temporal cannot be reached, or no worker tested it in time.
 */
export async function testDestination(
  { pool, destinationTests, logger }: DestinationTestService,
  owner: string,
  sealed: SealedConfig,
): Promise<readonly TestStep[]> {
  const id = await storeTest(pool, owner, sealed);
  try {
    const outcome = await destinationTests.test(id).catch((error: unknown): TestOutcome => {
      logger.warn({ err: error, test_id: id }, 'a test of a destination could not be started');
      throw new ApiError(
        503,
        'temporal_unreachable',
        'The scheduler cannot be reached. Nothing was tested; try again later.',
        retryLater,
      );
    });
    if (outcome.tested) return outcome.steps;
    throw new ApiError(503, 'not_tested', `${outcome.reason} Try again later.`, retryLater);
  } finally {
    await removeTest(pool, id);
  }
}
