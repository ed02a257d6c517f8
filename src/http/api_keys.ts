import { createHash, randomBytes } from 'node:crypto';

/** The scopes that a key can have. Write does not imply read. */
export const scopes = [
  'batch_export:read',
  'batch_export:write',
  'dashboard:read',
  'dashboard:write',
  'query:read',
] as const;
export type Scope = (typeof scopes)[number];

/** Lets secret scanners recognize a key of exportd. */
const keyPrefix = 'exk_';

/** Generates a personal API key from 32 random bytes. */
export const newApiKey = (): string => keyPrefix + randomBytes(32).toString('base64url');

/** The hash that is stored of a key. A plain SHA-256 is enough because keys are random. */
export const hashOfKey = (key: string): Buffer => createHash('sha256').update(key).digest();

export const isScope = (text: string): text is Scope => (scopes as readonly string[]).includes(text);
