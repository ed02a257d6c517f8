import { createHash, randomBytes } from 'node:crypto';

/** What a key may be allowed to do. Write does not imply read. */
export const scopes = [
  'batch_export:read',
  'batch_export:write',
  'dashboard:read',
  'dashboard:write',
  'query:read',
] as const;
export type Scope = (typeof scopes)[number];

/** Marks a string as a key of exportd, so that a scanner for leaked secrets can find it. */
const keyPrefix = 'exk_';

/** A new personal API key: 32 random bytes that nobody can guess. */
export const newApiKey = (): string => keyPrefix + randomBytes(32).toString('base64url');

/** What is stored of a key. A plain hash is enough, since the key is as random as any salt. */
export const hashOfKey = (key: string): Buffer => createHash('sha256').update(key).digest();

/** True when the text names a scope. */
export const isScope = (text: string): text is Scope => (scopes as readonly string[]).includes(text);
