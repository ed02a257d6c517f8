import type pg from 'pg';
import type { ModelQuery } from './model_query.ts';
import { sameKey } from './sort_key.ts';

/** The tuples that one COPY gave. */
export interface CopiedTuples {
  /** The tuples back to back, in memory that is used for nothing else, so that it can be handed to a thread. */
  readonly block: Buffer;
  readonly rows: number;
  /** Where the last tuple begins. */
  readonly lastAt: number;
  /** Whether the byte bound ended it, so that there may be more rows. */
  readonly cut: boolean;
}

export interface CopyBounds {
  /** Bytes after which no further row is taken, but for those that share the last key; the first is always taken. */
  readonly maxBytes: number;
  /** Called once when enough has been taken: the place to cancel the statement. The rest is read and dropped. */
  readonly onEnough: () => void;
}

/** What pg asks of a query object; it replaces `callback` by one that also ends its own time limit. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCopyData: (message: { chunk: Buffer }) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/** Signature, flags and length of the header's extension, which has never held anything. */
const headerLength = 19;
const smallestBlock = 64 * 1024;

/**
 * Runs `COPY (select) TO STDOUT (FORMAT binary)` and keeps the tuples as they come: PostgreSQL sends one row in each
 * message, the header in front of the first. Rejects with PostgreSQL's error, or that of the connection.
 */
export function copyOut(
  connection: pg.PoolClient,
  select: string,
  query: ModelQuery,
  bounds: CopyBounds,
): Promise<CopiedTuples> {
  return new Promise((resolve, reject) => {
    let block = Buffer.allocUnsafeSlow(smallestBlock);
    let length = 0;
    let rows = 0;
    let lastAt = 0;
    let headerSeen = false;
    let cut = false;

    const take = (message: Buffer): void => {
      const at = headerSeen ? 0 : headerLength;
      headerSeen = true;
      const fields = message.length < at + 2 ? -1 : message.readInt16BE(at);
      if (fields === -1 || cut) return; // the trailer, the header of no rows, or what was under way when cancelled
      const size = message.length - at;
      if (rows > 0 && length + size > bounds.maxBytes && !sameKey(block, lastAt, message, at, query)) {
        cut = true;
        bounds.onEnough();
        return;
      }
      if (length + size > block.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(block.length * 2, length + size));
        block.copy(larger, 0, 0, length);
        block = larger;
      }
      message.copy(block, length, at);
      lastAt = length;
      length += size;
      rows += 1;
    };

    const copy: CopyQuery = {
      // An error after the cut is the cancellation: what was taken before is whole.
      callback: (error) => {
        if (error && !cut) reject(error);
        else resolve({ block: block.subarray(0, length), rows, lastAt, cut });
      },
      submit: (wire) => wire.query(`copy (${select}) to stdout (format binary)`),
      handleCopyData: ({ chunk }) => take(chunk),
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => copy.callback(),
      handleError: (error) => copy.callback(error),
    };
    connection.query(copy);
  });
}
