import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';

/** Binds a sealed secret to its webhook, so that it cannot be used for another one. */
const sealContext = (webhookId: string): string => `webhooks/${webhookId}`;

/** Encrypts the secret of a webhook. */
export const sealWebhookSecret = (keyRing: KeyRing, webhookId: string, secret: string): string =>
  keyRing.seal(secret, sealContext(webhookId));

/** Decrypts the secret of a webhook; undefined when no key of the key ring fits. */
export function openWebhookSecret(keyRing: KeyRing, webhookId: string, sealed: string): string | undefined {
  try {
    return keyRing.open(sealed, sealContext(webhookId));
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined;
    throw error;
  }
}

/** Encrypts the secret of a webhook again, under the first key. @throws SecretUnreadable */
export const resealWebhookSecret = (keyRing: KeyRing, webhookId: string, sealed: string): string =>
  keyRing.seal(keyRing.open(sealed, sealContext(webhookId)), sealContext(webhookId));
