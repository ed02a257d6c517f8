/** Server-side encryption of a destination's objects. */
import type { S3Config } from './config.ts';

/** Server-side encryption of an object. */
export interface ObjectEncryption {
  readonly ServerSideEncryption?: 'AES256' | 'aws:kms';
  readonly SSEKMSKeyId?: string;
}

/** The encryption that the requests of a config ask for. */
export function encryptionOf({
  encryption,
  kms_key_id,
}: Pick<S3Config, 'encryption' | 'kms_key_id'>): ObjectEncryption {
  if (encryption === null) return {};
  return { ServerSideEncryption: encryption, ...(kms_key_id === null ? {} : { SSEKMSKeyId: kms_key_id }) };
}
