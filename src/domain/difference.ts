import {
  areComparable,
  bucketsOf,
  encodeBuckets,
  type Fingerprint,
  type FingerprintBucket,
  subtractFingerprint,
} from './fingerprint.ts';

/** What a person decides about rows that the files of an interval have and the source lacks. */
export const differenceDecisions = ['keep', 'remove'] as const;
export type DifferenceDecision = (typeof differenceDecisions)[number];

/**
 * What a check of files found, by its kind, such as `mismatched`. Equal texts are of the same rows or objects.
 */
export type Findings = Readonly<Record<string, string>>;

/** Rows that the files of an interval have and the source lacks, and what a person decides about them. */
export interface DecidedDifference {
  readonly decision: DifferenceDecision;
  readonly reason: string;
  readonly user_id: number;
  /** The run whose manifest was compared. */
  readonly run_id: string;
  /** How many rows the source lacks. */
  readonly rows: number;
  /** Which they are; null if the rows of the source and of the files are not comparable. */
  readonly missing: Fingerprint | null;
  /** What else a check had found. */
  readonly findings: Findings;
}

/** The last decision about an interval that holds of its files. */
export interface StoredDecision extends DecidedDifference {
  /** ISO 8601. */
  readonly at: string;
}

/** The rows of files by whose number a bucket of the source has fewer. Late rows of the same bucket hide as many. */
export const netMissingRows = (files: Fingerprint, source: Fingerprint): Fingerprint | null =>
  areComparable(files, source) ? subtractFingerprint(files, source) : null;

/** The rows of files that a comparison expects in the source: those that were kept without it are not expected. */
export const expectedRows = (files: Fingerprint, kept: Fingerprint | null): Fingerprint =>
  kept && areComparable(files, kept) ? subtractFingerprint(files, kept) : files;

/**
 * The kept rows that a source still lacks, as exactly as fingerprints tell: those of a bucket leave it together, once the
 * source has all rows of the files again in it.
 * @param hasBucket whether the source has exactly these rows in the bucket
 */
export function keptRows(
  files: Fingerprint,
  kept: Fingerprint | null,
  hasBucket: (bucket: FingerprintBucket) => boolean,
): Fingerprint | null {
  if (!kept || !areComparable(files, kept)) return kept;
  const back = new Set(bucketsOf(files).flatMap((bucket) => (hasBucket(bucket) ? [bucket.index] : [])));
  return {
    ...kept,
    encoded_buckets: encodeBuckets(bucketsOf(kept).filter(({ index }) => !back.has(index))),
  };
}

/** Whether rows that the source lacks are among those that were decided about. */
export function areDecided(
  missing: Fingerprint | undefined,
  { missing: decided }: Pick<DecidedDifference, 'missing'>,
): boolean {
  if (!missing || !decided || !areComparable(missing, decided)) return false;
  const known = new Map(bucketsOf(decided).map((bucket) => [bucket.index, bucket]));
  return bucketsOf(missing).every(
    ({ index, rows, sum }) => known.get(index)?.rows === rows && known.get(index)?.sum === sum,
  );
}
