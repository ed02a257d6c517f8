import type { Command } from 'commander';
import { createKeyRing } from '../../config/key_ring.ts';
import { CliError } from '../cli_error.ts';
import { counted, printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { withPool } from '../with_pool.ts';

/** `secrets rotate`. */
export function addSecretCommands(program: Command): void {
  const secrets = program
    .command('secrets')
    .description('secrets of destinations and webhooks, stored encrypted with EXPORTD_ENCRYPTION_KEYS');

  secrets
    .command('rotate')
    .description('encrypt every stored secret with the first key of EXPORTD_ENCRYPTION_KEYS')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }) => {
      const { rotateConfigSecrets } = await import('../../destination/sealed_config.ts');
      const { rotateWebhookSecrets } = await import('../../notifications/webhooks.ts');
      const keyRing = createKeyRing(commandSettings(process.env).EXPORTD_ENCRYPTION_KEYS);
      const { configs, webhooks } = await withPool(async (pool) => ({
        configs: await rotateConfigSecrets(pool, keyRing),
        webhooks: await rotateWebhookSecrets(pool, keyRing),
      }));
      const rotated = configs.rotated + webhooks.rotated;
      const unreadable = [...configs.unreadable, ...webhooks.unreadable];
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
          `${counted(unreadable.length, 'secret')} could not be decrypted: add the missing keys to EXPORTD_ENCRYPTION_KEYS and run this command again, or set the secrets of these destinations and webhooks anew.`,
        );
    });
}
