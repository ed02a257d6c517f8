import { SecretUnreadable, type KeyRing } from '../config/key_ring.ts';

/** What a sealed secret is bound to, so that it opens nowhere else. */
const sealContext = (webhookId: string): string => `webhooks/${webhookId}`;

/** Seals the secret of a webhook. */
export const sealWebhookSecret = (keyRing: KeyRing, webhookId: string, secret: string): string =>
  keyRing.seal(secret, sealContext(webhookId));

/** The secret in clear, or undefined when no key of the ring opens it. */
export function openWebhookSecret(keyRing: KeyRing, webhookId: string, sealed: string): string | undefined {
  try {
    return keyRing.open(sealed, sealContext(webhookId));
  } catch (error) {
    if (error instanceof SecretUnreadable) return undefined;
    throw error;
  }
}
