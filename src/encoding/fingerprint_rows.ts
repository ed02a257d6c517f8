import { encodeBuckets, maxFingerprintBuckets, type Fingerprint } from '../domain/fingerprint.ts';
import { hashBytes, type Hash64 } from '../source/hash_bytes.ts';
import type { FingerprintPlan } from '../source/source.ts';
import { MalformedBlock } from './rows.ts';

/** Milliseconds from 1970 to 2000, the epoch of PostgreSQL's timestamps. */
const postgresqlEpochMs = 946_684_800_000;

/** Adds up the rows of one or several blocks by bucket. */
export interface FingerprintSum {
  /**
   * Adds tuples of a block: those that start from `start` on and before `end`. The block is complete, as the encoders
   * check.
   * @throws MalformedBlock
   */
  add(block: Buffer, start: number, end: number): void;
  /**
   * Adds rows whose fields are known: `times` and `ids` have, from index `from` up to `until`, the offset of each field's
   * length in the block.
   * @throws MalformedBlock
   */
  addFields(block: Buffer, times: Int32Array, ids: Int32Array, from: number, until: number): void;
  result(): Fingerprint;
}

/** Starts a fingerprint of rows. */
export function startFingerprint({
  hash,
  width_ms,
  origin,
  inserted_at,
  id,
}: FingerprintPlan): FingerprintSum {
  const originUs = (new Date(origin).getTime() - postgresqlEpochMs) * 1_000;
  const widthUs = width_ms * 1_000;
  const rows = new Float64Array(maxFingerprintBuckets);
  const highs = new Uint32Array(maxFingerprintBuckets);
  const lows = new Uint32Array(maxFingerprintBuckets);
  const hashed: Hash64 = { high: 0, low: 0 };

  const addRow = (block: Buffer, view: DataView, timeAt: number, idAt: number, idEnd: number): void => {
    const time = view.getInt32(timeAt) * 0x1_0000_0000 + view.getUint32(timeAt + 4);
    const index = Math.floor((time - originUs) / widthUs);
    if (!(index >= 0 && index < maxFingerprintBuckets))
      throw new MalformedBlock('The insertion time of a row is not in its interval.');
    hashBytes(block, idAt, idEnd, hashed);
    const low = (lows[index] ?? 0) + hashed.low;
    rows[index] = (rows[index] ?? 0) + 1;
    lows[index] = low;
    highs[index] = (highs[index] ?? 0) + hashed.high + (low > 0xffff_ffff ? 1 : 0);
  };

  return {
    add: (block, start, end) => {
      const view = new DataView(block.buffer, block.byteOffset, block.length);
      for (let at = start; at < end;) {
        const fields = view.getInt16(at);
        let idAt = -1;
        let idEnd = -1;
        let timeAt = -1;
        at += 2;
        for (let field = 0; field < fields; field += 1) {
          const length = view.getInt32(at);
          at += 4;
          if (length < 0) continue;
          if (field === id) {
            idAt = at;
            idEnd = at + length;
          } else if (field === inserted_at) timeAt = at;
          at += length;
        }
        if (timeAt < 0 || idAt < 0) throw new MalformedBlock('A row has no id or no insertion time.');
        addRow(block, view, timeAt, idAt, idEnd);
      }
    },
    addFields: (block, times, ids, from, until) => {
      const view = new DataView(block.buffer, block.byteOffset, block.length);
      for (let row = from; row < until; row += 1) {
        const idAt = (ids[row] ?? 0) + 4;
        addRow(block, view, (times[row] ?? 0) + 4, idAt, idAt + view.getInt32(idAt - 4));
      }
    },
    result: () => ({
      hash,
      width_ms,
      encoded_buckets: encodeBuckets(
        Array.from(rows, (count, index) => ({
          index,
          rows: count,
          sum: ((BigInt(highs[index] ?? 0) << 32n) | BigInt(lows[index] ?? 0)).toString(),
        })),
      ),
    }),
  };
}

/** The fingerprint of all rows of a block. @throws MalformedBlock */
export function fingerprintBlock(block: Buffer, plan: FingerprintPlan): Fingerprint {
  const sum = startFingerprint(plan);
  sum.add(block, 0, block.length);
  return sum.result();
}
