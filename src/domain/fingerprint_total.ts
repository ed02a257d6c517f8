import { rowsOfFingerprint, type Fingerprint, type FingerprintHash } from './fingerprint.ts';

/** A fingerprint without its buckets. Two that have equal rows and sums are of the same rows. */
export interface FingerprintTotal {
  readonly hash: FingerprintHash;
  readonly rows: number;
  /** Sum of the hashes of the rows' ids modulo 2^64, as a decimal number without a sign. */
  readonly sum: string;
}

/** The total of a fingerprint's buckets. */
export const totalOf = (fingerprint: Fingerprint): FingerprintTotal => ({
  hash: fingerprint.hash,
  rows: rowsOfFingerprint(fingerprint),
  sum: BigInt.asUintN(
    64,
    fingerprint.buckets.reduce((sum, bucket) => sum + BigInt(bucket.sum), 0n),
  ).toString(),
});
