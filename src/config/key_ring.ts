import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { SettingsError } from './settings_error.ts';

const algorithm = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const fingerprintBytes = 16;

/** No key of the ring opens a stored secret, or the secret was moved to another location. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
  /** Whether the ring has the public key that sealed it, so that a ring with the private key opens it. */
  readonly isForWorkers: boolean;
  constructor(message: string, isForWorkers = false) {
    super(message);
    this.isForWorkers = isForWorkers;
  }
}

/** How many secrets were encrypted again, and which could not be. */
interface SecretRotation {
  readonly rotated: number;
  /** What each unreadable secret belongs to, and why it is unreadable. */
  readonly unreadable: readonly string[];
}

/** A stored secret, and what it belongs to. */
export interface StoredSecret {
  readonly owner: string;
  readonly sealed: string;
  readonly location: string;
  /** Stores it sealed again, wherever it still has the text that was read. @returns how often it was stored */
  readonly replace: (again: string) => Promise<number>;
}

/** Encrypts secrets under the first key of the ring. */
export async function rotateSecrets(
  keyRing: KeyRing,
  secrets: readonly StoredSecret[],
): Promise<SecretRotation> {
  let rotated = 0;
  const unreadable: string[] = [];
  for (const { owner, sealed, location, replace } of secrets) {
    if (sealed.startsWith(`${keyRing.keyId}:`)) continue;
    try {
      rotated += await replace(keyRing.seal(keyRing.open(sealed, location), location));
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push(`${owner}: ${error.message}`);
    }
  }
  return { rotated, unreadable };
}

/** Seals and opens secrets at rest. The first key seals and every key opens, so keys can be rotated. */
export interface KeyRing {
  /** What sealed secrets start with: the id of the first key, and for a pair that of the key of its fingerprints. */
  readonly keyId: string;
  /** Whether the ring opens what it seals; false for servers, whose first key is the public one of a pair. */
  readonly opens: boolean;
  /**
   * Encrypts under the first key.
   * @param location Where the secret is stored. Authenticated, not encrypted: `open` needs the same location.
   * @returns `key id:base64`
   */
  seal(secret: string, location: string): string;
  /** @throws SecretUnreadable when no key fits or the location differs. */
  open(sealed: string, location: string): string;
  /**
   * Whether two sealed secrets of one location are equal. Servers can tell by the fingerprints of the symmetric key.
   * @throws SecretUnreadable when neither fingerprints nor keys tell
   */
  isSame(one: string, other: string, location: string): boolean;
}

/** A key of the ring. A pair is X25519: its public key seals, its private key also opens. */
type Key =
  | { readonly kind: 'symmetric'; readonly key: Buffer }
  | { readonly kind: 'public'; readonly publicKey: KeyObject; readonly privateKey?: undefined }
  | { readonly kind: 'private'; readonly publicKey: KeyObject; readonly privateKey: KeyObject };
type PairKey = Exclude<Key, { kind: 'symmetric' }>;

/**
 * Reads a key ring from the setting EXPORTD_ENCRYPTION_KEYS: keys of 32 bytes, separated by commas. `id:base64` is
 * symmetric; `id:public:base64` and `id:private:base64` are the keys of a pair.
 * @throws SettingsError whose message never shows a key.
 */
export function createKeyRing(setting: string | undefined): KeyRing {
  if (!setting)
    throw new SettingsError(
      'EXPORTD_ENCRYPTION_KEYS is missing: exportd stores secrets of destinations only encrypted. ' +
        'Create keys with `exportd secrets create`.',
    );
  const keys = parseKeys(setting);
  const [first] = keys;
  if (!first) throw new SettingsError('EXPORTD_ENCRYPTION_KEYS contains no key.');
  const [sealingId, sealing] = first;
  const fingerprintKeys = new Map(
    [...keys].flatMap(([id, key]) =>
      key.kind === 'symmetric' ? [[id, deriveKey(key.key, fingerprintPurpose)]] : [],
    ),
  );
  const [fingerprintId] = fingerprintKeys.keys();
  const keyId =
    sealing.kind === 'symmetric' || fingerprintId === undefined ? sealingId : `${sealingId}+${fingerprintId}`;

  const seal = (secret: string, location: string): string => {
    if (sealing.kind === 'symmetric') return join(keyId, encrypt(sealing.key, secret, location));
    const fingerprint = fingerprintId === undefined ? [] : [fingerprintOf(fingerprintId, secret, location)];
    return join(keyId, Buffer.concat([...fingerprint, encryptFor(sealing, secret, location)]));
  };

  const open = (sealed: string, location: string): string => {
    const { id, bytes } = split(sealed);
    const key = keys.get(id);
    if (!key)
      throw new SecretUnreadable(
        `A stored secret is encrypted with the key "${id}", which EXPORTD_ENCRYPTION_KEYS does not contain.`,
      );
    if (key.kind === 'public')
      throw new SecretUnreadable(
        `A stored secret is encrypted with the key "${id}", of which EXPORTD_ENCRYPTION_KEYS has the public key only: the private key is with the workers.`,
        true,
      );
    try {
      return key.kind === 'symmetric' ? decrypt(key.key, bytes, location) : decryptWith(key, bytes, location);
    } catch {
      throw new SecretUnreadable(`The key "${id}" does not decrypt a stored secret.`);
    }
  };

  const fingerprintOf = (id: string, secret: string, location: string): Buffer =>
    createHmac('sha256', fingerprintKeys.get(id) ?? '')
      .update(JSON.stringify([location, secret]))
      .digest()
      .subarray(0, fingerprintBytes);

  const isSame = (one: string, other: string, location: string): boolean => {
    const known = [one, other].map((sealed) => split(sealed).fingerprint);
    const id = known.find((fingerprint) => fingerprint && fingerprintKeys.has(fingerprint.id))?.id;
    if (id === undefined) return open(one, location) === open(other, location);
    const [left, right] = [one, other].map((sealed, index) =>
      known[index]?.id === id ? known[index].bytes : fingerprintOf(id, open(sealed, location), location),
    );
    return left !== undefined && right?.length === left.length && timingSafeEqual(left, right);
  };

  return { keyId, opens: sealing.kind !== 'public', seal, open, isSame };
}

/** Creates the keys of a pair, as they are written in EXPORTD_ENCRYPTION_KEYS: `public` for servers, `private` for workers. */
export function createKeyPair(id: string): { readonly public: string; readonly private: string } {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  const { d = '' } = privateKey.export({ format: 'jwk' });
  return {
    public: `${id}:public:${rawPublicKey(publicKey).toString('base64')}`,
    private: `${id}:private:${Buffer.from(d, 'base64url').toString('base64')}`,
  };
}

/** Creates a symmetric key, as it is written in EXPORTD_ENCRYPTION_KEYS. */
export const createSymmetricKey = (id: string): string => `${id}:${randomBytes(keyBytes).toString('base64')}`;

/**
 * Derives a key for another purpose from each symmetric key of the ring, the first one first. They tell nothing of those
 * that they are derived from.
 * @throws SettingsError whose message never shows a key.
 */
export function deriveKeys(setting: string, purpose: string): readonly Buffer[] {
  const derived = [...parseKeys(setting).values()].flatMap((key) =>
    key.kind === 'symmetric' ? [deriveKey(key.key, purpose)] : [],
  );
  if (derived.length === 0)
    throw new SettingsError(
      'EXPORTD_ENCRYPTION_KEYS has no symmetric key (id:base64), from which servers and workers derive signatures. Add one behind the other keys, the same for both.',
    );
  return derived;
}

const fingerprintPurpose = 'exportd fingerprints of secrets';

const deriveKey = (key: Buffer, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), purpose, keyBytes));

const join = (id: string, bytes: Buffer): string => `${id}:${bytes.toString('base64')}`;

interface Sealed {
  readonly id: string;
  /** Present for a secret that the key of a pair has sealed, beside a symmetric key. */
  readonly fingerprint: { readonly id: string; readonly bytes: Buffer } | undefined;
  readonly bytes: Buffer;
}

function split(sealed: string): Sealed {
  const [ids = '', encoded = ''] = sealed.split(':');
  const [id = '', fingerprintId] = ids.split('+');
  const bytes = Buffer.from(encoded, 'base64');
  if (fingerprintId === undefined) return { id, fingerprint: undefined, bytes };
  return {
    id,
    fingerprint: { id: fingerprintId, bytes: bytes.subarray(0, fingerprintBytes) },
    bytes: bytes.subarray(fingerprintBytes),
  };
}

/** AES-256-GCM: nonce, tag and ciphertext. */
function encrypt(key: Buffer, secret: string, location: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(location));
  const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]);
}

function decrypt(key: Buffer, bytes: Buffer, location: string): string {
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  decipher.setAAD(Buffer.from(location));
  decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString(
    'utf8',
  );
}

/** Encrypts for the holder of a private key, with a pair that exists for this secret alone: its public key comes first. */
function encryptFor({ publicKey }: PairKey, secret: string, location: string): Buffer {
  const ephemeral = generateKeyPairSync('x25519');
  const sender = rawPublicKey(ephemeral.publicKey);
  const shared = diffieHellman({ privateKey: ephemeral.privateKey, publicKey });
  return Buffer.concat([sender, encrypt(messageKey(shared, sender, publicKey), secret, location)]);
}

function decryptWith(
  { publicKey, privateKey }: PairKey & { kind: 'private' },
  bytes: Buffer,
  location: string,
): string {
  const sender = bytes.subarray(0, keyBytes);
  const shared = diffieHellman({ privateKey, publicKey: publicKeyOf(sender) });
  return decrypt(messageKey(shared, sender, publicKey), bytes.subarray(keyBytes), location);
}

const messageKey = (shared: Buffer, sender: Buffer, recipient: KeyObject): Buffer =>
  Buffer.from(
    hkdfSync(
      'sha256',
      shared,
      Buffer.concat([sender, rawPublicKey(recipient)]),
      'exportd sealed secret',
      keyBytes,
    ),
  );

const publicKeyOf = (raw: Buffer): KeyObject =>
  createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: raw.toString('base64url') }, format: 'jwk' });

const rawPublicKey = (key: KeyObject): Buffer =>
  Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');

/** What precedes the 32 bytes of an X25519 private key in PKCS #8 (RFC 8410). */
const privateKeyPrefix = Buffer.from('302e020100300506032b656e04220420', 'hex');

const privateKeyOf = (raw: Buffer): KeyObject =>
  createPrivateKey({ key: Buffer.concat([privateKeyPrefix, raw]), format: 'der', type: 'pkcs8' });

function parseKeys(setting: string): ReadonlyMap<string, Key> {
  const keys = new Map<string, Key>();
  for (const [index, text] of setting.split(',').entries()) {
    const [id, key] = parseKey(text.trim(), index + 1);
    if (keys.has(id))
      throw new SettingsError(
        `EXPORTD_ENCRYPTION_KEYS is invalid: key ${index + 1} has the id of another key.`,
      );
    keys.set(id, key);
  }
  return keys;
}

function parseKey(text: string, position: number): [string, Key] {
  const [, id, kind, encoded] = /^([\w.-]+):(?:(public|private):)?([A-Za-z0-9+/_=-]+)$/.exec(text) ?? [];
  const bytes = Buffer.from(encoded ?? '', 'base64');
  const invalid = new SettingsError(
    `EXPORTD_ENCRYPTION_KEYS is invalid: key ${position} must have the form id:base64, id:public:base64 or id:private:base64, with ${keyBytes} bytes in base64.`,
  );
  if (id === undefined || bytes.length !== keyBytes) throw invalid;
  if (kind === undefined) return [id, { kind: 'symmetric', key: bytes }];
  try {
    if (kind === 'private') {
      const privateKey = privateKeyOf(bytes);
      return [id, { kind, privateKey, publicKey: createPublicKey(privateKey) }];
    }
    const publicKey = publicKeyOf(bytes);
    // Fails for the few values that are no useful public key.
    diffieHellman({ privateKey: generateKeyPairSync('x25519').privateKey, publicKey });
    return [id, { kind: 'public', publicKey }];
  } catch {
    throw invalid;
  }
}
