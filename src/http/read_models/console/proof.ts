import {
  areComparable,
  bucketInterval,
  differingBuckets,
  fingerprintHashOf,
  totalOf,
} from '../../../domain/fingerprint.ts';
import { type ExistingRun, exportedFingerprint } from '../../../domain/run_state.ts';
import type { IntervalDetailResponse } from '../../schemas/console/interval_detail.ts';

/**
 * The fingerprint of the source right after the export against that of the files and the rejected rows, by insertion
 * time. Null if they are not comparable, because persons decide which rows are selected.
 */
export function proofOf(run: ExistingRun): IntervalDetailResponse['proof'] {
  if (!run.finished) return null;
  const source = run.finished.fingerprint;
  const bucket = exportedFingerprint(run);
  if (!areComparable(source, bucket)) return null;
  const interval = { start: run.spec.data_interval_start, end: run.spec.data_interval_end };
  const rowsAt = ({ buckets }: typeof source, index: number) =>
    buckets.find((one) => one.index === index)?.rows ?? 0;
  const differing = new Set(differingBuckets(source, bucket).map(({ index }) => index));
  const indexes = [...new Set([...source.buckets, ...bucket.buckets].map(({ index }) => index))];
  const hash = fingerprintHashOf(run.spec.model);
  return {
    source: totalOf(hash, [source]),
    bucket: totalOf(hash, [bucket]),
    is_equal: differing.size === 0,
    buckets: indexes
      .toSorted((one, other) => one - other)
      .map((index) => ({
        ...bucketInterval(interval, source, index),
        source_rows: rowsAt(source, index),
        bucket_rows: rowsAt(bucket, index),
        is_equal: !differing.has(index),
      })),
  };
}
