import type { JsonValue } from './event.ts';
import { addFingerprints, type Fingerprint } from './fingerprint.ts';
import { compareSortKeys, type SortKey } from './sort_key.ts';

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
