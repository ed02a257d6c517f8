import { randomUUID } from 'node:crypto';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { destinationTypeOf } from './registry.ts';
import { openSealed, type SealedConfig } from './sealed_config.ts';
import type { TestStep } from './test_result.ts';

/** The config of a test is gone: its caller has stopped waiting. */
export class DestinationTestNotFound extends Error {
  override readonly name = 'DestinationTestNotFound';
}

/**
 * Stores a config that is to be tested, and removes what tests before it left behind.
 * @param owner what the secrets were sealed for.
 * @returns the id of the test.
 */
export async function storeTest(pool: Pool, owner: string, sealed: SealedConfig): Promise<string> {
  const id = randomUUID();
  await pool.query(
    `with abandoned as (
       delete from exportd.destination_tests where created_at < clock_timestamp() - interval '1 hour'
     )
     insert into exportd.destination_tests (id, owner_id, destination_type, config, secrets)
     values ($1, $2, $3, $4, $5)`,
    [id, owner, sealed.destination_type, JSON.stringify(sealed.config), JSON.stringify(sealed.secrets)],
  );
  return id;
}

/** Removes a config that was tested. */
export async function removeTest(pool: Pool, testId: string): Promise<void> {
  await pool.query('delete from exportd.destination_tests where id = $1', [testId]);
}

/** Tests a destination by the id of its stored test. */
export type TestDestination = (testId: string) => Promise<readonly TestStep[]>;

/** Opens stored tests and takes their steps. @throws DestinationTestNotFound, SecretUnreadable */
export const createDestinationTester =
  (pool: Pool, keyRing: KeyRing, settings: Settings): TestDestination =>
  async (testId) => {
    const { rows } = await pool.query<SealedConfig & { owner_id: string }>(
      'select owner_id, destination_type, config, secrets from exportd.destination_tests where id = $1',
      [testId],
    );
    const [found] = rows;
    if (!found) throw new DestinationTestNotFound(`There is no test ${testId} of a destination any more.`);
    const type = destinationTypeOf(found.destination_type);
    const { config } = openSealed(keyRing, found.owner_id, found);
    return type.test(type.parseConfig(config, settings), settings);
  };
