/** What verifying can find wrong. */
export type FindingKind =
  /** Time between two manifests, or to the end of the range that was asked for, that no manifest covers. */
  | 'gap'
  /** Time that two manifests cover. */
  | 'overlap'
  | 'manifest_unreadable'
  /** A manifest whose name does not agree with what it says of itself. */
  | 'manifest_misnamed'
  /** A manifest whose sums are not those of its files, or whose files are not in the order of their keys. */
  | 'manifest_inconsistent'
  | 'file_missing'
  /** An object that has not the bytes or the CRC-32 of its manifest. */
  | 'file_changed'
  /** An object that cannot be decoded. */
  | 'file_unreadable'
  /** An object that has not as many rows as its manifest says. */
  | 'file_rows'
  /** Rows that are not in the order of their keys, or not between the keys that the manifest gives. */
  | 'file_order'
  /** An object that two manifests name. */
  | 'file_shared'
  /** Rows that are in the source and in no file. */
  | 'missing'
  /** Rows that are twice in a manifest, or in two of them. */
  | 'duplicate'
  /** Rows that are in a file and not in the source, where they may have been deleted since. */
  | 'unexpected'
  /** Rows whose values are not those of the source. */
  | 'mismatched';

/** A row by the name people know it by: uuid of an event, distinct_id of a person. */
export interface NamedRow {
  readonly id: string;
  /** Of a changed row: the column, never its values. */
  readonly column?: string;
}

/** Something that is wrong. */
export interface Finding {
  readonly kind: FindingKind;
  /** The time that it is about, ISO 8601; null when it is about none. */
  readonly start: string | null;
  readonly end: string | null;
  /** The manifest or the file in question, by its full name. */
  readonly object: string | null;
  /** How many rows, or objects, it counts. */
  readonly count: number;
  /** Some of the rows; the others are only counted. */
  readonly rows: readonly NamedRow[];
  /** One sentence. */
  readonly detail: string;
}

/** Something worth knowing that is not wrong. */
export interface Note {
  readonly start: string | null;
  readonly end: string | null;
  readonly detail: string;
}

/** What was found behind one manifest. */
export interface IntervalReport {
  readonly start: string;
  readonly end: string;
  readonly manifest: string;
  readonly model: string;
  readonly generation: number;
  readonly settled: boolean;
  readonly files: number;
  /** As read. */
  readonly rows: number;
  readonly bytes: number;
  /** Rows of the interval in the source now; null when they were not compared. */
  readonly source_rows: number | null;
  readonly rejected: number;
  readonly findings: number;
}

/** The outcome of verifying an export. */
export interface VerificationReport {
  /** Whether nothing is wrong. */
  readonly ok: boolean;
  readonly batch_export_id: string;
  /** Whether every value was compared, or only that the rows are there. */
  readonly deep: boolean;
  readonly from: string | null;
  readonly to: string | null;
  readonly totals: {
    readonly manifests: number;
    readonly files: number;
    readonly rows: number;
    readonly bytes: number;
    readonly rejected: number;
    readonly missing: number;
    readonly duplicate: number;
    readonly unexpected: number;
    readonly mismatched: number;
    readonly gaps: number;
  };
  readonly intervals: readonly IntervalReport[];
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

/** Why verifying could not look: there is no such export, or a place that it has to look at cannot be read. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}
