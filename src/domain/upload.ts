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
  /** CRC-32 of the part's bytes as they are sent, eight hexadecimal digits. */
  readonly crc32: string;
  readonly first: SortKey | null;
  readonly last: SortKey | null;
  /** What an encoder needs to go on after this part (for gzip: CRC and length of the text so far). */
  readonly encoder_state: { readonly crc32: number; readonly length: number };
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

/** An upload that was created and not yet completed. */
export interface OpenUpload {
  readonly key: string;
  readonly upload_id: string;
  /** Tells the object made of it from any other; null for one that was recorded without, which is never resumed. */
  readonly mark: string | null;
  readonly parts: readonly PlannedPart[];
  /** The highest part number ever planned for it, dropped parts included: a number is never used twice. */
  readonly highest_part_number: number;
}
