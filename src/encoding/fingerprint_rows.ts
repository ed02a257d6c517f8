import { maxFingerprintBuckets, type Fingerprint } from '../domain/fingerprint.ts';
import { hashBytes, type Hash64 } from '../source/postgresql_hash.ts';
import type { FingerprintPlan } from '../source/source.ts';
import { MalformedBlock } from './unencodable_row.ts';

/** Milliseconds from 1970 to 2000, the epoch of PostgreSQL's timestamps. */
const postgresqlEpochMs = 946_684_800_000;

/** Adds up the rows of one or several blocks by bucket. */
export interface FingerprintSum {
  /** Adds the tuple at `tupleAt` of a block and returns where the next one starts. @throws MalformedBlock */
  add(block: Buffer, tupleAt: number): number;
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
  return {
    add: (block, tupleAt) => {
      let idAt = -1;
      let idEnd = -1;
      let timeAt = -1;
      let at = tupleAt + 2;
      const fields = block.readInt16BE(tupleAt);
      for (let field = 0; field < fields; field += 1) {
        const length = block.readInt32BE(at);
        at += 4;
        if (length < 0) continue;
        if (field === id) {
          idAt = at;
          idEnd = at + length;
        }
        if (field === inserted_at) timeAt = at;
        at += length;
      }
      const index =
        timeAt < 0 || idAt < 0
          ? -1
          : Math.floor(
              (block.readInt32BE(timeAt) * 0x1_0000_0000 + block.readUInt32BE(timeAt + 4) - originUs) /
                widthUs,
            );
      if (!(index >= 0 && index < maxFingerprintBuckets))
        throw new MalformedBlock('A row has no id or no insertion time within its interval.');
      hashBytes(block, idAt, idEnd, hashed);
      rows[index] = (rows[index] ?? 0) + 1;
      const low = (lows[index] ?? 0) + hashed.low;
      lows[index] = low;
      highs[index] = (highs[index] ?? 0) + hashed.high + (low > 0xffff_ffff ? 1 : 0);
      return at;
    },
    result: () => ({
      hash,
      width_ms,
      buckets: Array.from(rows, (count, index) => ({
        index,
        rows: count,
        sum: ((BigInt(highs[index] ?? 0) << 32n) | BigInt(lows[index] ?? 0)).toString(),
      })).filter((bucket) => bucket.rows > 0),
    }),
  };
}

/** The fingerprint of all rows of a block. @throws MalformedBlock */
export function fingerprintBlock(block: Buffer, plan: FingerprintPlan): Fingerprint {
  const sum = startFingerprint(plan);
  for (let at = 0; at < block.length;) at = sum.add(block, at);
  return sum.result();
}
