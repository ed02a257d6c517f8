import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { SettingsError } from './settings.ts';

const algorithm = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** A stored secret that no key of the ring opens, or that was moved from where it was sealed. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
}

/** Seals and opens secrets at rest. The first key seals, every key opens, so that keys can be rotated. */
export interface KeyRing {
  /** AES-256-GCM under the first key, as `key id:base64`. `place` says where the secret is stored and must be given again to open it. */
  seal(secret: string, place: string): string;
  /** @throws SecretUnreadable when no key fits, or `place` is another one. */
  open(sealed: string, place: string): string;
}

/**
 * Reads a key ring from the setting EXPORTD_ENCRYPTION_KEYS: `id:base64` pairs of 32-byte keys, separated by commas.
 * @throws SettingsError that says what is wrong and never shows a key.
 */
export function createKeyRing(setting: string | undefined): KeyRing {
  if (!setting)
    throw new SettingsError(
      'The setting EXPORTD_ENCRYPTION_KEYS is missing: secrets of destinations are never stored in clear. ' +
        'Make a key with `echo "main:$(openssl rand -base64 32)"`.',
    );
  const keys = new Map(setting.split(',').map((pair, index) => parseKey(pair.trim(), index + 1)));
  const [sealing] = keys;
  if (!sealing) throw new SettingsError('The setting EXPORTD_ENCRYPTION_KEYS holds no key.');

  return {
    seal: (secret, place) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, sealing[1], nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(place));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `${sealing[0]}:${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')}`;
    },
    open: (sealed, place) => {
      const [id = '', encoded = ''] = sealed.split(':');
      const key = keys.get(id);
      if (!key)
        throw new SecretUnreadable(
          `A stored secret was sealed with the key "${id}", which is not configured.`,
        );
      const bytes = Buffer.from(encoded, 'base64');
      try {
        const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
          authTagLength: tagBytes,
        });
        decipher.setAAD(Buffer.from(place));
        decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
        return Buffer.concat([
          decipher.update(bytes.subarray(nonceBytes + tagBytes)),
          decipher.final(),
        ]).toString('utf8');
      } catch {
        throw new SecretUnreadable(`A stored secret does not open with the key "${id}".`);
      }
    },
  };
}

function parseKey(pair: string, position: number): [string, Buffer] {
  const [, id, encoded] = /^([\w.-]+):([A-Za-z0-9+/_=-]+)$/.exec(pair) ?? [];
  const key = Buffer.from(encoded ?? '', 'base64');
  if (id === undefined || key.length !== keyBytes)
    throw new SettingsError(
      `The setting EXPORTD_ENCRYPTION_KEYS is not usable: key ${position} is not of the form id:base64 with ${keyBytes} bytes.`,
    );
  return [id, key];
}
