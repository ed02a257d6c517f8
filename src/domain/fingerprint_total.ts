import { rowsOfFingerprint, type Fingerprint, type FingerprintHash } from './fingerprint.ts';

/** A fingerprint without its buckets. Equal totals are of the same rows. */
export interface FingerprintTotal {
  readonly hash: FingerprintHash;
  readonly rows: number;
  /** Sum of the hashes of the rows' ids modulo 2^64, as a decimal number without a sign. */
  readonly sum: string;
}

/** The total of the fingerprints of disjoint sets of rows, all with this hash. */
export const totalOf = (
  hash: FingerprintHash,
  fingerprints: readonly Pick<Fingerprint, 'buckets'>[],
): FingerprintTotal => ({
  hash,
  rows: fingerprints.reduce((sum, fingerprint) => sum + rowsOfFingerprint(fingerprint), 0),
  sum: BigInt.asUintN(
    64,
    fingerprints.flatMap(({ buckets }) => buckets).reduce((sum, bucket) => sum + BigInt(bucket.sum), 0n),
  ).toString(),
});
