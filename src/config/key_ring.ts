import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { SettingsError } from './settings.ts';

const algorithm = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** No key of the ring opens a stored secret, or the secret was moved to another location. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
}

/** Seals and opens secrets at rest. The first key seals and every key opens, so keys can be rotated. */
export interface KeyRing {
  /** Id of the first key, which sealed secrets start with. */
  readonly keyId: string;
  /**
   * Encrypts with AES-256-GCM under the first key.
   * @param location Where the secret is stored. Authenticated, not encrypted: `open` needs the same location.
   * @returns `key id:base64`
   */
  seal(secret: string, location: string): string;
  /** @throws SecretUnreadable when no key fits or the location differs. */
  open(sealed: string, location: string): string;
}

/**
 * Reads a key ring from the setting EXPORTD_ENCRYPTION_KEYS: `id:base64` pairs of 32-byte keys, separated by commas.
 * @throws SettingsError whose message never shows a key.
 */
export function createKeyRing(setting: string | undefined): KeyRing {
  if (!setting)
    throw new SettingsError(
      'EXPORTD_ENCRYPTION_KEYS is missing: exportd stores secrets of destinations only encrypted. ' +
        'Create a key with `echo "main:$(openssl rand -base64 32)"`.',
    );
  const keys = parseKeys(setting);
  const [sealing] = keys;
  if (!sealing) throw new SettingsError('EXPORTD_ENCRYPTION_KEYS contains no key.');

  return {
    keyId: sealing[0],
    seal: (secret, location) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, sealing[1], nonce, { authTagLength: tagBytes });
      cipher.setAAD(Buffer.from(location));
      const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `${sealing[0]}:${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64')}`;
    },
    open: (sealed, location) => {
      const [id = '', encoded = ''] = sealed.split(':');
      const key = keys.get(id);
      if (!key)
        throw new SecretUnreadable(
          `A stored secret is encrypted with the key "${id}", which EXPORTD_ENCRYPTION_KEYS does not contain.`,
        );
      const bytes = Buffer.from(encoded, 'base64');
      try {
        const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
          authTagLength: tagBytes,
        });
        decipher.setAAD(Buffer.from(location));
        decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
        return Buffer.concat([
          decipher.update(bytes.subarray(nonceBytes + tagBytes)),
          decipher.final(),
        ]).toString('utf8');
      } catch {
        throw new SecretUnreadable(`The key "${id}" does not decrypt a stored secret.`);
      }
    },
  };
}

/**
 * Derives a key for another purpose from each key of the ring, the first one first. They tell nothing of those that they
 * are derived from.
 * @throws SettingsError whose message never shows a key.
 */
export const deriveKeys = (setting: string, purpose: string): readonly Buffer[] =>
  [...parseKeys(setting).values()].map((key) =>
    Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), purpose, keyBytes)),
  );

const parseKeys = (setting: string): ReadonlyMap<string, Buffer> =>
  new Map(setting.split(',').map((pair, index) => parseKey(pair.trim(), index + 1)));

function parseKey(pair: string, position: number): [string, Buffer] {
  const [, id, encoded] = /^([\w.-]+):([A-Za-z0-9+/_=-]+)$/.exec(pair) ?? [];
  const key = Buffer.from(encoded ?? '', 'base64');
  if (id === undefined || key.length !== keyBytes)
    throw new SettingsError(
      `EXPORTD_ENCRYPTION_KEYS is invalid: key ${position} must have the form id:base64, with ${keyBytes} bytes in base64.`,
    );
  return [id, key];
}
