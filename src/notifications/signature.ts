import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';
const newSecretBytes = 32;
/** Lengths of a key that the Standard Webhooks scheme allows, in bytes. */
const minBytes = 24;
const maxBytes = 64;

/** A new secret of a webhook: `whsec_` and base64. */
export const createWebhookSecret = (): string => prefix + randomBytes(newSecretBytes).toString('base64');

/** Whether a text is a secret as the Standard Webhooks scheme has them: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(prefix.length);
  const key = keyOf(text);
  return (
    text.startsWith(prefix) &&
    key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '') &&
    key.length >= minBytes &&
    key.length <= maxBytes
  );
}

/**
 * The headers that say who sent a message, by the scheme of Standard Webhooks.
 * @param id the same for every attempt to send the message.
 * @param now the time of this attempt, which receivers compare with their own.
 */
export function signedHeaders(secret: string, id: string, now: Date, body: string): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const signature = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}

const keyOf = (secret: string): Buffer => Buffer.from(secret.slice(prefix.length), 'base64');
