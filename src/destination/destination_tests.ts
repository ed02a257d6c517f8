import { randomUUID } from 'node:crypto';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { testS3, type TestStep } from './bucket_test.ts';
import { parseS3Config } from './config.ts';
import { locationOf } from './keys.ts';
import { openSealed, type SealedConfig } from './config_versions.ts';
import { storeTraits } from './store_traits.ts';

/** The config of a test was deleted, because its caller stopped waiting. */
class DestinationTestNotFound extends Error {
  override readonly name = 'DestinationTestNotFound';
}

/**
 * Stores a config for a test, and deletes configs of abandoned tests.
 * @param test `owner`: the id that the secrets were sealed for; `team_id`: the project that tests.
 * @returns the id of the test.
 */
export async function storeDestinationTest(
  pool: Pool,
  { owner, team_id }: { readonly owner: string; readonly team_id: number },
  sealed: SealedConfig,
): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `with abandoned as (
       delete from exportd.destination_tests where created_at < clock_timestamp() - interval '1 hour'
     )
     insert into exportd.destination_tests (id, owner_id, team_id, destination_type, config, secrets)
     values ($1, $2, $3, $4, $5, $6)`,
    [
      id,
      owner,
      team_id,
      sealed.destination_type,
      JSON.stringify(sealed.config),
      JSON.stringify(sealed.secrets),
    ],
  );
  return id;
}

/** Deletes the config of a test. */
export async function deleteDestinationTest(pool: Pool, testId: string): Promise<void> {
  await pool.query('delete from exportd.destination_tests where id = $1', [testId]);
}

/** Runs a stored destination test by its id. */
export type TestDestination = (testId: string) => Promise<readonly TestStep[]>;

/**
 * Creates the function that runs stored tests, and stores the traits that they find.
 * @throws DestinationTestNotFound, SecretUnreadable
 */
export const createDestinationTester =
  (pool: Pool, keyRing: KeyRing, settings: Settings): TestDestination =>
  async (testId) => {
    const { rows } = await pool.query<SealedConfig & { owner_id: string; team_id: number }>(
      'select owner_id, team_id, destination_type, config, secrets from exportd.destination_tests where id = $1',
      [testId],
    );
    const [found] = rows;
    if (!found) throw new DestinationTestNotFound(`Destination test ${testId} no longer exists.`);
    const { config } = openSealed(keyRing, found.owner_id, found);
    const parsed = parseS3Config(config, settings);
    const { steps, traits } = await testS3(parsed, settings);
    if (Object.values(traits).some((trait) => trait !== null))
      await storeTraits(pool, { team_id: found.team_id, location: locationOf(parsed) }, traits);
    return steps;
  };
