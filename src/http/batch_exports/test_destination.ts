import type { TestStep } from '../../destination/bucket_test.ts';
import { deleteDestinationTest, storeDestinationTest } from '../../destination/destination_tests.ts';
import type { SealedConfig } from '../../destination/config_versions.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { DestinationTestClient, TestOutcome } from '../../temporal/clients/verification_client.ts';
import { ApiError, retryAfter, temporalUnreachable } from '../api_error.ts';

/** What testing a destination needs. */
export interface DestinationTestService {
  readonly pool: Pool;
  readonly destinationTests: DestinationTestClient;
  readonly logger: Logger;
}

/**
 * Tests a config on a worker, since only workers decrypt its secrets. Stores nothing permanently.
 * @param test `owner`: the id that the secrets are sealed for; `team_id`: the project that tests.
 * @throws ApiError 503 when Temporal cannot be reached, or no worker ran the test in time.
 */
export async function testDestination(
  { pool, destinationTests, logger }: DestinationTestService,
  test: { readonly owner: string; readonly team_id: number },
  sealed: SealedConfig,
): Promise<readonly TestStep[]> {
  const id = await storeDestinationTest(pool, test, sealed);
  try {
    const outcome = await destinationTests.test(id).catch((error: unknown): TestOutcome => {
      logger.warn({ err: error, test_id: id }, 'Could not start a destination test.');
      throw temporalUnreachable('Nothing was tested.');
    });
    if (outcome.tested) return outcome.steps;
    throw new ApiError(503, 'not_tested', `${outcome.reason} Retry later.`, retryAfter(5));
  } finally {
    await deleteDestinationTest(pool, id);
  }
}
