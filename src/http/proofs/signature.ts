import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/** The signature of a document, with all that is needed to check it. */
export interface DocumentSignature {
  readonly algorithm: 'Ed25519';
  /** The first 16 hexadecimal digits of the SHA-256 of the public key. */
  readonly key_id: string;
  /** 32 bytes in base64. Who checks a proof compares it with the one that the sender publishes. */
  readonly public_key: string;
  /** Of the canonical JSON of the document, in base64. */
  readonly value: string;
}

/** Before the 32 bytes of a key in DER, as RFC 8410 defines. */
const [pkcs8, spki] = ['302e020100300506032b657004220420', '302a300506032b6570032100'].map((hex) =>
  Buffer.from(hex, 'hex'),
) as [Buffer, Buffer];
const publicKeyBytes = 32;

/** Canonical JSON (RFC 8785): names sorted, no spaces. Equal documents have equal text. */
export const canonicalJson = (document: unknown): string =>
  JSON.stringify(document, (_name, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );

const keyIdOf = (publicKey: string): string =>
  createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex').slice(0, 16);

/** Creates the pair of keys of a seed of 32 bytes. */
function keysOf(seed: Buffer): { readonly privateKey: KeyObject; readonly publicKey: string } {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8, seed]), format: 'der', type: 'pkcs8' });
  const exported = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: exported.subarray(-publicKeyBytes).toString('base64') };
}

/** Signs a document with the key of a seed. */
export function signDocument(document: unknown, seed: Buffer): DocumentSignature {
  const { privateKey, publicKey } = keysOf(seed);
  return {
    algorithm: 'Ed25519',
    key_id: keyIdOf(publicKey),
    public_key: publicKey,
    value: sign(null, Buffer.from(canonicalJson(document)), privateKey).toString('base64'),
  };
}

/** Whether a signature is of this document, by the public key that it names. It needs no server. */
export function isSignedBy(document: unknown, { public_key, key_id, value }: DocumentSignature): boolean {
  const bytes = Buffer.from(public_key, 'base64');
  if (bytes.length !== publicKeyBytes || keyIdOf(public_key) !== key_id) return false;
  const key = createPublicKey({ key: Buffer.concat([spki, bytes]), format: 'der', type: 'spki' });
  return verify(null, Buffer.from(canonicalJson(document)), key, Buffer.from(value, 'base64'));
}
