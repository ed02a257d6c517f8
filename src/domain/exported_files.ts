import { counted } from './in_words.ts';
import type { Model } from './batch_export.ts';
import type { JsonValue } from './event.ts';
import {
  addFingerprints,
  areComparable,
  bucketsOf,
  differingBuckets,
  encodeBuckets,
  type Fingerprint,
  type FingerprintBucket,
} from './fingerprint.ts';

/** The order of events in the source and in files. Times and uuids have a fixed format, so their text has their order. */
function compareSortKeys(one: SortKey, other: SortKey): number {
  if (one.inserted_at !== other.inserted_at) return one.inserted_at < other.inserted_at ? -1 : 1;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}

/** The sort key of a row. `first` and `last` of a file and the cursor of a run consist of sort keys. */
export interface SortKey {
  /** ISO 8601 UTC with microseconds. */
  readonly inserted_at: string;
  /** `uuid` of an event, `distinct_id` of a person. */
  readonly id: string;
  /** A row of a key whose rows need more than a page; absent when no row of the key follows. */
  readonly within?: RowOfKey;
}

/** A row among those with one key, which are read in the order of their hashes. */
export interface RowOfKey {
  /** Hash of what the source stores of the row: a signed 64-bit integer. */
  readonly row_hash: string;
  /** How many rows with this hash there are up to this one. They are equal, so it does not matter which they are. */
  readonly copies: number;
}

/** Where a part ends inside a block of rows, whose encoded bytes continue in the next part. */
export interface BlockCut {
  /** The block has the rows after this key, up to and including `last`. */
  readonly after: SortKey | null;
  readonly last: SortKey;
  /** The rows of each block that was encoded alone and joined with the others; absent if it is only one. */
  readonly joined?: readonly number[];
  /** How many of the block's bytes this part and earlier ones have. */
  readonly skip: number;
  /** CRC-32 of those bytes, eight hexadecimal digits. */
  readonly crc32: string;
}

/**
 * A part of a file, recorded before it is sent. Its rows, fingerprint, keys and encoder state are those of the blocks that
 * end in it.
 */
export interface PlannedPart {
  readonly part_number: number;
  /** Rows and bytes of this part. */
  readonly rows: number;
  readonly bytes: number;
  /** The rows of this part. */
  readonly fingerprint: Fingerprint;
  /** Rows between `first` and `last` that were left out because the format cannot represent them. */
  readonly rejected: number;
  /** CRC-32 of the part's bytes as sent, eight hexadecimal digits. */
  readonly crc32: string;
  /** Sort keys of the first and the last row of this part; null for a part without rows. */
  readonly first: SortKey | null;
  readonly last: SortKey | null;
  /** What the encoder needs of this part to finish the file (for gzip: CRC and length of the uncompressed text). */
  readonly encoder_state: JsonValue;
  /** Set where parts have one size and this one ends inside a block: an attempt that resumes reads the block again. */
  readonly cut?: BlockCut;
  /** True for a part that ends inside the trailer of the file: an attempt resumes before it. */
  readonly in_trailer?: boolean;
  /** True for the last part of a file. It ends with the trailer, so no attempt can resume after it. */
  readonly final?: boolean;
}

/** A completed object of the destination. */
export interface ExportedFile {
  readonly key: string;
  readonly rows: number;
  /** The rows of the object. */
  readonly fingerprint: Fingerprint;
  readonly bytes: number;
  readonly crc32: string;
  readonly first: SortKey | null;
  readonly last: SortKey | null;
}

export interface CompletedFile extends ExportedFile {
  /** When a lifecycle rule of the bucket deletes the object; ISO 8601, null without a rule. */
  readonly expires_at: string | null;
  /** The number of rows of its key range that were rejected. */
  readonly rejected: number;
  /** The generation that wrote it, if it is a file of a former manifest that a run added late rows to. */
  readonly generation?: number;
}

/** A completed file as it is recorded: its fingerprint is null if the totals of its run tell it. */
export interface RecordedFile extends Omit<CompletedFile, 'fingerprint'> {
  readonly fingerprint: Fingerprint | null;
}

/** Orders the files of a manifest by their keys. A file of late rows lies between the keys of others. */
export const inKeyOrder = <File extends Pick<CompletedFile, 'first'>>(files: readonly File[]): File[] =>
  files.toSorted(({ first: one }, { first: other }) => (one && other ? compareSortKeys(one, other) : 0));

/** Groups the files of a manifest whose keys ascend: those of one generation. */
export const fileSequences = <File extends { readonly generation?: number | undefined }>(
  files: readonly File[],
): File[][] => [...Map.groupBy(files, ({ generation }) => generation).values()];

/**
 * The completed files of a range, added up. A run may have thousands, and its state is written with each of its steps, so
 * it has only their totals. `readFiles` of src/decisions returns them one by one.
 */
export interface FileTotals {
  readonly count: number;
  readonly rows: number;
  readonly bytes: number;
  readonly rejected: number;
  /** The rows of the files; null without files. */
  readonly fingerprint: Fingerprint | null;
  /** The sort key of the last row; null without rows. */
  readonly last: SortKey | null;
  /** When a lifecycle rule of the bucket deletes the first of them; ISO 8601, null without a rule. */
  readonly expires_at: string | null;
}

export const noFiles: FileTotals = {
  count: 0,
  rows: 0,
  bytes: 0,
  rejected: 0,
  fingerprint: null,
  last: null,
  expires_at: null,
};

/** Adds the totals of files in key order. @throws RangeError when their fingerprints are not comparable */
export const addFiles = (...totals: readonly FileTotals[]): FileTotals =>
  totals.reduce(
    (before, more) => ({
      count: before.count + more.count,
      rows: before.rows + more.rows,
      bytes: before.bytes + more.bytes,
      rejected: before.rejected + more.rejected,
      fingerprint:
        before.fingerprint && more.fingerprint
          ? addFingerprints(before.fingerprint, more.fingerprint)
          : (before.fingerprint ?? more.fingerprint),
      last: more.last ?? before.last,
      expires_at: earlierOf(before.expires_at, more.expires_at),
    }),
    noFiles,
  );

export const totalsOf = (
  file: Pick<CompletedFile, 'rows' | 'bytes' | 'rejected' | 'fingerprint' | 'last' | 'expires_at'>,
): FileTotals => ({
  count: 1,
  rows: file.rows,
  bytes: file.bytes,
  rejected: file.rejected,
  fingerprint: file.fingerprint,
  last: file.last,
  expires_at: file.expires_at,
});

const earlierOf = (one: string | null, other: string | null): string | null => {
  if (one === null || other === null) return one ?? other;
  return Date.parse(other) < Date.parse(one) ? other : one;
};

/** A file that was started and not completed. */
export interface OpenUpload {
  readonly key: string;
  /** Null for a file of one part that is written in one request. */
  readonly upload_id: string | null;
  /** Stored as metadata of the object, to distinguish it from any other object with the same key. */
  readonly upload_token: string;
  /** The size of every part but the last, if the destination requires one size; else null. */
  readonly part_bytes: number | null;
  readonly parts: readonly PlannedPart[];
  /** The highest part number planned so far, dropped parts included. Numbers are never reused. */
  readonly highest_part_number: number;
}

/** A key range of an interval, exported by one activity: `after` is exclusive, `until` inclusive. */
export interface ExportRange {
  readonly after: SortKey | null;
  readonly until: SortKey | null;
  /** The number of attempts started. Only the latest may record steps. */
  readonly attempt: number;
  readonly upload: OpenUpload | null;
  /** The completed files of the generation. */
  readonly files: FileTotals;
  /** The number of the next file of this generation. Numbers are never reused. */
  readonly next_file: number;
  /** Whether the files contain every row of the range. */
  readonly finished: boolean;
}

/** A published file of an earlier generation, which stays in the bucket. */
export interface EarlierFile extends Pick<ExportedFile, 'key' | 'rows' | 'bytes' | 'crc32'> {
  readonly generation: number;
}

/** What a run that publishes leaves of the generations before it. */
export interface EarlierGenerations {
  /** The generation that it replaces, if nothing of it is needed any more; null if its files stay or there is none. */
  readonly covers: number | null;
  /** Files that stay because their rows could not be compared. Readers do not need them. */
  readonly kept: readonly EarlierFile[];
  /** Files of persons that stay, because they may have the only state of a person. Readers need them. */
  readonly earlier: readonly EarlierFile[];
  /** Generations that stay in another bucket with their manifests, because this manifest can name no file there. */
  readonly elsewhere: readonly number[];
}

/** A run that replaces nothing leaves nothing. */
export const nothingEarlier: EarlierGenerations = { covers: null, kept: [], earlier: [], elsewhere: [] };

/** A manifest of the bucket that the journal does not know as the current one of its interval. */
export interface AdoptedManifest extends Pick<EarlierGenerations, 'kept' | 'earlier'> {
  /** The run that wrote it. The journal may not know it. */
  readonly run_id: string;
  readonly generation: number;
  readonly model: Model;
  /** The config of its files. If the journal lacks it, that of the run which found the manifest. */
  readonly config_version: number;
  readonly settled: boolean;
  readonly files: readonly ExportedFile[];
  readonly rejected_file: Omit<ExportedFile, 'first' | 'last'> | null;
  readonly source_rows: number;
  readonly fingerprint: Fingerprint;
  readonly encoder: string;
  /** When the manifest was written, ISO 8601. */
  readonly created_at: string;
  /** The generation with which the run that found it continues, above this one. */
  readonly raised_to: number;
}

/** The files of an adopted manifest, which does not say what was rejected or when a lifecycle rule deletes them. */
export const adoptedFiles = ({ files }: Pick<AdoptedManifest, 'files'>): CompletedFile[] =>
  files.map((file) => ({ ...file, rejected: 0, expires_at: null }));

/**
 * How the source compares with the manifest that a run replaces.
 * - `same_rows`: both have the same rows.
 * - `every_row_present`: every row of the manifest is in the source, compared by key.
 * - `shrink_allowed`: they differ, and the run may publish what the source has.
 * - `late_rows_added`: the source lacks rows of the manifest, and has others. The run keeps the files of the manifest and adds
 *   one of the others.
 * - `not_comparable`: nothing shows that a row is missing, and nothing proves that none is. The older files stay.
 * - `removal_decided`: the source lacks rows of the manifest, and a person has decided to remove these and no others.
 * - `rows_kept`: the source lacks rows of the manifest and has no others, and a person has decided to keep these. The run publishes nothing.
 * - `rows_missing`: the source lacks rows of the manifest. The run must not publish.
 */
export type ReplacementOutcome =
  | 'same_rows'
  | 'every_row_present'
  | 'shrink_allowed'
  | 'late_rows_added'
  | 'not_comparable'
  | 'removal_decided'
  | 'rows_kept'
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
  /** Which rows the source lacks, if it lacks some. */
  readonly missing?: Fingerprint;
  /** The files to which the run adds late rows. */
  readonly base?: BaseFiles;
}

/** The files of a manifest to which a run adds late rows. */
export interface BaseFiles {
  readonly files: FileTotals;
  readonly rejected_file: ExportedFile | null;
  /** How many late rows were found, and whether there are more than one run adds. */
  readonly late_rows: number;
  readonly has_more: boolean;
  /** The run whose stream has the keys of the late rows: this one, or the one that it continues. */
  readonly listed_by: string;
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
      `The source no longer has ${missing_rows.toLocaleString('en')} of the ${counted(bucket_rows, 'row')} that were exported for ${interval.start} to ` +
        `${interval.end}; it has ${counted(source_rows, 'row')}${newRows > 0 ? `, at least ${newRows.toLocaleString('en')} of them not exported yet` : ''}. ` +
        `Nothing was published, and generation ${replaced.generation} and its files stay. ` +
        `Decide whether to keep these rows or to remove them from the bucket (exportd export difference)${newRows > 0 ? '; if they are kept, the new rows are not exported' : ''}.`,
    );
  }
}

/** The indexes of the buckets with published rows in which the source differs from them. */
export const bucketsToCompare = (published: Fingerprint, source: Fingerprint): number[] =>
  differingBuckets(published, source).flatMap(({ index, one }) => (one ? [index] : []));

/** How many published rows the buckets of the source lack, in total. A bucket with more rows makes up for no other. */
export function countFewerRows(published: Fingerprint, source: Fingerprint): number {
  const found = bucketsByIndex(source);
  return bucketsOf(published).reduce(
    (sum, { index, rows }) => sum + Math.max(0, rows - (found.get(index)?.rows ?? 0)),
    0,
  );
}

/**
 * Whether exported rows contain every published row: each bucket has the published rows, or the rows that the source had
 * when it was known to contain the published ones.
 */
export function containsPublishedRows(
  exported: Fingerprint,
  published: Fingerprint,
  source: Fingerprint,
): boolean {
  if (!areComparable(exported, published) || !areComparable(exported, source)) return false;
  const [read, proven] = [bucketsByIndex(exported), bucketsByIndex(source)];
  return bucketsOf(published).every(
    (bucket) =>
      isSame(bucket, read.get(bucket.index)) ||
      isSame(read.get(bucket.index) ?? emptyBucket(bucket.index), proven.get(bucket.index)),
  );
}

/** Replaces buckets of a fingerprint; those without rows are removed. */
export const withBuckets = (
  fingerprint: Fingerprint,
  replacements: ReadonlyMap<number, FingerprintBucket>,
): Fingerprint => ({
  ...fingerprint,
  encoded_buckets: encodeBuckets([...new Map([...bucketsByIndex(fingerprint), ...replacements]).values()]),
});

const bucketsByIndex = (fingerprint: Fingerprint): ReadonlyMap<number, FingerprintBucket> =>
  new Map(bucketsOf(fingerprint).map((bucket) => [bucket.index, bucket]));

const emptyBucket = (index: number): FingerprintBucket => ({ index, rows: 0, sum: '0' });

const isSame = (one: FingerprintBucket, other: FingerprintBucket | undefined): boolean =>
  one.rows === other?.rows && one.sum === other.sum;
