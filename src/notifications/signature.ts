import { createHmac, randomBytes } from 'node:crypto';

const prefix = 'whsec_';
const newSecretBytes = 32;
/** Key lengths that Standard Webhooks allows, in bytes. */
const minBytes = 24;
const maxBytes = 64;

/** Creates a random secret: `whsec_` and the key in base64. */
export const createWebhookSecret = (): string => prefix + randomBytes(newSecretBytes).toString('base64');

/** Whether a string is a Standard Webhooks secret: `whsec_` and 24 to 64 bytes in base64. */
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
 * Returns the signature headers of a message, as Standard Webhooks defines them.
 * @param id the same for every attempt to send the message
 * @param now the time of this attempt; receivers reject messages that are too old
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
