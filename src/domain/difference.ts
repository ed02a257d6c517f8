import { areComparable, type Fingerprint, subtractFingerprint } from './fingerprint.ts';

/** What a person decides about rows that the files of an interval have and the source lacks. */
export const differenceDecisions = ['keep', 'remove'] as const;
export type DifferenceDecision = (typeof differenceDecisions)[number];

/**
 * What a check of files found, by its kind, such as `mismatched`. Equal texts are of the same rows or objects. Rows that are known
 * one by one are `#` and their hashes; see `encodeHashes`.
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
  /** Each of them; see `encodeHashes`. Null if they are too many, or were not compared by key. */
  readonly missing_hashes: string | null;
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
