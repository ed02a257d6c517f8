import { areComparable, differingBuckets, type Fingerprint, type FingerprintBucket } from './fingerprint.ts';

/**
 * How the source compares with the manifest that a run replaces.
 * - `same_rows`: both have the same rows.
 * - `every_row_present`: every row of the manifest is in the source, compared by key.
 * - `shrink_allowed`: they differ, and the run may publish what the source has.
 * - `not_comparable`: nothing shows that a row is missing, and nothing proves that none is. The older files stay.
 * - `rows_missing`: the source lacks rows of the manifest. The run must not publish.
 */
export type ReplacementOutcome =
  | 'same_rows'
  | 'every_row_present'
  | 'shrink_allowed'
  | 'not_comparable'
  | 'rows_missing';

/** The numbers of rows that a comparison found. */
export interface MissingRows {
  /** Rows of the manifest that the source no longer has. If keys could not be read, at least as many. */
  readonly missing_rows: number;
  /** Rows of the manifest, with the rejected ones. */
  readonly bucket_rows: number;
  /** Rows of the source, under the selection of the manifest. */
  readonly source_rows: number;
}

/** The result of comparing the source with the manifest that a run replaces. */
export interface ReplacementCheck extends MissingRows {
  /** The run that published the manifest, and its generation. */
  readonly replaced: { readonly run_id: string; readonly generation: number };
  readonly outcome: ReplacementOutcome;
  /**
   * The rows of the source that were compared, under the selection of the manifest; null when nothing depends on them.
   * Later rows of the source are compared with them, because rows may be deleted after the check.
   */
  readonly source: Fingerprint | null;
  /** The generation whose rows were compared; null when it was checked before the export. */
  readonly generation: number | null;
}

/** Outcomes after which the published run contains every row of the manifest that it replaces. */
export const coversReplaced = ({ outcome }: Pick<ReplacementCheck, 'outcome'>): boolean =>
  outcome === 'same_rows' || outcome === 'every_row_present';

/** The source lacks rows of the manifest that the run would replace. The message says what to do. */
export class RowsMissingInSource extends Error {
  override readonly name = 'RowsMissingInSource';

  constructor(
    { missing_rows, bucket_rows, source_rows, replaced }: ReplacementCheck,
    interval: { readonly start: string; readonly end: string },
  ) {
    const newRows = source_rows - (bucket_rows - missing_rows);
    super(
      `The source no longer has ${missing_rows} of the ${bucket_rows} rows that were exported for ${interval.start} to ` +
        `${interval.end}; it has ${source_rows} rows${newRows > 0 ? `, at least ${newRows} of them not exported yet` : ''}. ` +
        `Nothing was published, and generation ${replaced.generation} and its files stay. ` +
        `To publish what the source has and delete the other rows from the bucket, retry the run with ` +
        `{"allow_shrink": true}, or set on_missing_rows to 'follow' in the destination. To keep them, do nothing` +
        `${newRows > 0 ? '; the new rows are then not exported' : ''}.`,
    );
  }
}

/** The indexes of the buckets in which the source differs from held rows. Buckets without held rows have nothing to lose. */
export const bucketsToCompare = (held: Fingerprint, source: Fingerprint): number[] =>
  differingBuckets(held, source).flatMap(({ index, one }) => (one ? [index] : []));

/** By how many rows the buckets of a fingerprint that have fewer rows than held have fewer, in total. */
export function countFewerRows(held: Fingerprint, source: Fingerprint): number {
  const found = bucketsOf(source);
  return held.buckets.reduce(
    (sum, { index, rows }) => sum + Math.max(0, rows - (found.get(index)?.rows ?? 0)),
    0,
  );
}

/**
 * Whether exported rows contain every held row: each bucket has the held rows, or the rows that the source had when it
 * was known to contain the held ones.
 */
export function containsHeldRows(exported: Fingerprint, held: Fingerprint, source: Fingerprint): boolean {
  if (!areComparable(exported, held) || !areComparable(exported, source)) return false;
  const [read, proven] = [bucketsOf(exported), bucketsOf(source)];
  return held.buckets.every(
    (bucket) =>
      isSame(bucket, read.get(bucket.index)) ||
      isSame(read.get(bucket.index) ?? emptyBucket(bucket.index), proven.get(bucket.index)),
  );
}

/** Replaces buckets of a fingerprint; those without rows are removed. */
export function withBuckets(
  fingerprint: Fingerprint,
  replacements: ReadonlyMap<number, FingerprintBucket>,
): Fingerprint {
  const buckets = new Map([...bucketsOf(fingerprint), ...replacements]);
  return {
    ...fingerprint,
    buckets: [...buckets.values()]
      .filter(({ rows }) => rows > 0)
      .toSorted((one, other) => one.index - other.index),
  };
}

const bucketsOf = ({ buckets }: Fingerprint): ReadonlyMap<number, FingerprintBucket> =>
  new Map(buckets.map((bucket) => [bucket.index, bucket]));

const emptyBucket = (index: number): FingerprintBucket => ({ index, rows: 0, sum: '0' });

const isSame = (one: FingerprintBucket, other: FingerprintBucket | undefined): boolean =>
  one.rows === other?.rows && one.sum === other.sum;
