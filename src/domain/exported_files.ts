import type { JsonValue } from './json_value.ts';

/** The place of a row in the export's order, as text: what `first` and `last` of a file and a cursor are made of. */
export interface SortKey {
  /** ISO 8601 UTC with microseconds. */
  readonly inserted_at: string;
  /** `uuid` of an event, `distinct_id` of a person. */
  readonly id: string;
}

/** One part of a multipart upload, as planned before it is sent. */
export interface PlannedPart {
  readonly part_number: number;
  /** Rows and bytes of this part alone. */
  readonly rows: number;
  readonly bytes: number;
  /** Rows between `first` and `last` that the format cannot hold and that are left out. */
  readonly rejected: number;
  /** CRC-32 of the part's bytes as they are sent, eight hexadecimal digits. */
  readonly crc32: string;
  /** Keys of the first and the last row that this part takes the export behind; null for a part without rows. */
  readonly first: SortKey | null;
  readonly last: SortKey | null;
  /** What the end of the file has to know of this part (for gzip: CRC and length of its text). */
  readonly encoder_state: JsonValue;
  /** True for the part that ends its file: nothing can be added behind its trailer, so no attempt goes on after it. */
  readonly final?: boolean;
}

/** A finished object of the destination. */
export interface ExportedFile {
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
  readonly crc32: string;
  readonly first: SortKey | null;
  readonly last: SortKey | null;
}

/** A finished file with what of the rows in its stretch is not in it. */
export interface CompletedFile extends ExportedFile {
  readonly rejected: number;
}

/** An upload that was created and not yet completed. */
export interface OpenUpload {
  readonly key: string;
  readonly upload_id: string;
  /** Tells the object made of it from any other. */
  readonly upload_token: string;
  readonly parts: readonly PlannedPart[];
  /** The highest part number ever planned for it, dropped parts included: a number is never used twice. */
  readonly highest_part_number: number;
}

/** A stretch of an interval in key order, exported by one activity: behind `after`, up to and with `until`. */
export interface ExportRange {
  readonly after: SortKey | null;
  readonly until: SortKey | null;
  /** How many attempts have begun; the latest alone may record steps. */
  readonly attempt: number;
  readonly upload: OpenUpload | null;
  /** Finished files of the generation, in order. */
  readonly files: readonly CompletedFile[];
  /** The number of the next file in this generation; a number is never used twice. */
  readonly next_file: number;
  /** Whether every row of the range is in its files. */
  readonly finished: boolean;
}
