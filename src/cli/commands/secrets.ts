import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import {
  createKeyPair,
  createKeyRing,
  createSymmetricKey,
  rotateSecrets,
  type StoredSecret,
} from '../../config/key_ring.ts';
import type { Pool } from '../../journal/database.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { withAudit } from '../control_database.ts';

// Modules are imported when a command runs: loading the SDKs takes most of a second.

/** Bytes of a password, before they are encoded. */
const passwordBytes = 24;

/**
 * Creates random secrets for a new installation, by the names of the variables in docker-compose.yml. Servers and workers
 * share a symmetric key, which signs queries; only workers get the private key, which decrypts secrets.
 * @param now the date becomes the id of the keys
 */
export function createSecrets(now: Date): Readonly<Record<string, string>> {
  const id = now.toISOString().slice(0, 10);
  const pair = createKeyPair(id);
  const shared = createSymmetricKey(`${id}-shared`);
  const password = (): string => randomBytes(passwordBytes).toString('base64url');
  return {
    SERVER_ENCRYPTION_KEYS: `${pair.public},${shared}`,
    WORKER_ENCRYPTION_KEYS: `${pair.private},${shared}`,
    POSTGRES_PASSWORD: password(),
    QUERY_ROLE_PASSWORD: password(),
    S3_SECRET_ACCESS_KEY: password(),
  };
}

/** Reads every sealed secret of the control database. `secrets rotate` encrypts them again, and `doctor` opens them. */
export async function listStoredSecrets(pool: Pool): Promise<readonly StoredSecret[]> {
  const { secretLists } = await import('../../temporal/capabilities.ts');
  return (await Promise.all(secretLists.map((list) => list(pool)))).flat();
}

/** `secrets create|rotate|purge`. */
export function addSecretCommands(program: Command): void {
  const secrets = program
    .command('secrets')
    .description('secrets of destinations and webhooks, stored encrypted with EXPORTD_ENCRYPTION_KEYS');

  secrets
    .command('create')
    .description(
      'print random secrets for a new installation: keys for EXPORTD_ENCRYPTION_KEYS of servers and of workers, and the passwords of docker-compose.yml',
    )
    .option('--json', 'print JSON')
    .action((options: { json?: boolean }) => {
      const created = createSecrets(new Date());
      printer(options)(created, () => Object.entries(created).map(([name, value]) => `${name}=${value}`));
    });

  secrets
    .command('rotate')
    .description('encrypt every stored secret with the first key of EXPORTD_ENCRYPTION_KEYS')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const keyRing = createKeyRing((await commandSettings(process.env)).EXPORTD_ENCRYPTION_KEYS);
      const { rotated, unreadable } = await withAudit({ action: 'secrets.rotate' }, async (pool) =>
        rotateSecrets(keyRing, await listStoredSecrets(pool)),
      );
      printer(options)({ key: keyRing.keyId, rotated, unreadable }, () => [
        `Encrypted ${counted(rotated, 'secret')} again with the key "${keyRing.keyId}".`,
        ...unreadable.map((reason) => `Not decrypted: ${reason}`),
        ...(unreadable.length === 0
          ? [
              `All stored secrets are encrypted with it. Run "exportd query setup" if queries have a role, then remove the other keys from EXPORTD_ENCRYPTION_KEYS and restart the servers and workers.`,
            ]
          : []),
      ]);
      if (unreadable.length > 0)
        throw new CliError(
          `${counted(unreadable.length, 'secret')} could not be decrypted: add the missing keys to EXPORTD_ENCRYPTION_KEYS and run this command again, or set these secrets anew.`,
        );
    });

  secrets
    .command('purge')
    .description(
      'remove the secrets that no unfinished run needs: of deleted exports, without waiting for their clean-up, and of replaced versions',
    )
    .option(
      '--former-buckets',
      'also of buckets that exports have left; their files there can then be neither verified nor deleted',
    )
    .option('--json', 'print JSON')
    .action(async (options: { formerBuckets?: boolean; json?: boolean }) => {
      const { removeSecrets } = await import('../../decisions/remove_secrets.ts');
      const { inTransaction } = await import('../../journal/database.ts');
      const removed = await withAudit({ action: 'secrets.purge' }, (pool) =>
        inTransaction(pool, (connection) =>
          removeSecrets(connection, { cleanUpMs: 0, formerBuckets: options.formerBuckets ?? false }),
        ),
      );
      printer(options)({ removed }, () => [
        `Removed the secrets of ${counted(removed, 'config version')}. Backups of the control database still have them.`,
      ]);
    });
}
