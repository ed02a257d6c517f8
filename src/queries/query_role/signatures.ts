import { createHmac } from 'node:crypto';
import type { TransactionIdentity } from '../../source/source_connection.ts';

/** The name of the keys that sign, among those derived from EXPORTD_ENCRYPTION_KEYS. */
export const signingPurpose = 'exportd query role';

const signed = (key: Buffer, ...message: readonly (string | number)[]): string =>
  createHmac('sha256', key).update(message.join(':')).digest('hex');

/**
 * Signs which project a transaction reads. The statements of a query could set the project, but not sign it: only
 * `exportd_query.team_id()` can read the key. A signature is worthless in any other transaction.
 */
export const signTeam = (key: Buffer, teamId: string, { pid, started }: TransactionIdentity): string =>
  signed(key, 'team', teamId, pid, started);

/** Signs that the statement of a process may be cancelled. */
export const signCancellation = (key: Buffer, pid: number): string => signed(key, 'cancel', pid);

const blockBytes = 64;

/** The padded forms of a key, with which PostgreSQL computes HMAC-SHA-256 by its `sha256()` (RFC 2104). */
export function paddedKeys(key: Buffer): { readonly inner: Buffer; readonly outer: Buffer } {
  const padded = Buffer.concat([key], blockBytes);
  const combined = (pad: number): Buffer => padded.map((byte) => byte ^ pad) as Buffer;
  return { inner: combined(0x36), outer: combined(0x5c) };
}
