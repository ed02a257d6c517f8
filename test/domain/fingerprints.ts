import {
  bucketWidthMs,
  emptyFingerprint,
  encodeBuckets,
  type Fingerprint,
} from '../../src/domain/fingerprint.ts';
import type { DataInterval } from '../../src/domain/intervals.ts';

const hour: DataInterval = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };

/** The fingerprint of `rows` rows in the first bucket of an interval. `sum` stands for which rows they are. */
export const fingerprintOf = (
  rows: number,
  { interval = hour, sum = String(rows) }: { interval?: DataInterval; sum?: string } = {},
): Fingerprint => ({
  ...emptyFingerprint(interval, 'uuid_hash_extended/0'),
  width_ms: bucketWidthMs(interval),
  encoded_buckets: encodeBuckets([{ index: 0, rows, sum }]),
});
