import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';
import type { Pool } from '../journal/database.ts';
import { resealWebhookSecret } from './webhook_secret.ts';

/**
 * Encrypts the secrets of all webhooks under the first key of the ring.
 * @returns how many were encrypted again, and what each unreadable one belongs to.
 */
export async function rotateWebhookSecrets(
  pool: Pool,
  keyRing: KeyRing,
): Promise<{ rotated: number; unreadable: string[] }> {
  const { rows } = await pool.query<{ id: string; secret: string }>(
    'select id, secret from exportd.webhooks where not starts_with(secret, $1) order by id',
    [`${keyRing.keyId}:`],
  );
  let rotated = 0;
  const unreadable: string[] = [];
  for (const { id, secret } of rows) {
    try {
      // A secret that was changed meanwhile is encrypted with the first key already.
      const { rowCount } = await pool.query(
        'update exportd.webhooks set secret = $3 where id = $1 and secret = $2',
        [id, secret, resealWebhookSecret(keyRing, id, secret)],
      );
      rotated += rowCount ?? 0;
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push(`the secret of webhook ${id}: ${error.message}`);
    }
  }
  return { rotated, unreadable };
}
