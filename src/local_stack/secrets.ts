import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFileAtomically, type DataFolder } from './data_folder.ts';

/** Secrets that a stack generates at its first start and keeps. */
export interface Secrets {
  readonly postgresqlPassword: string;
  readonly s3AccessKeyId: string;
  readonly s3SecretAccessKey: string;
  /** Value of EXPORTD_ENCRYPTION_KEYS. */
  readonly encryptionKeys: string;
}

const createSecrets = (): Secrets => ({
  postgresqlPassword: randomBytes(18).toString('base64url'),
  s3AccessKeyId: `EXPORTD${randomBytes(7).toString('hex').toUpperCase().slice(0, 13)}`,
  s3SecretAccessKey: randomBytes(30).toString('base64url'),
  encryptionKeys: `local:${randomBytes(32).toString('base64')}`,
});

/** Reads the secrets of the folder, or creates them in a file that only its owner can read. */
export function loadOrCreateSecrets(folder: DataFolder): Secrets {
  const file = folder.inside('secrets.json');
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Secrets;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const secrets = createSecrets();
  writeFileAtomically(file, JSON.stringify(secrets, null, 2), 0o600);
  return secrets;
}
