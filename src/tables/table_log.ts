/** What a table is to exportd, whatever its format: versions that add and remove files, each written once. */
import type { CompletedFile, EarlierFile } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExportedColumn } from '../source/row_selection.ts';

/** What a run publishes: the files that its interval has from now on, and those that it had before. */
export interface TablePublication {
  readonly batch_export_id: string;
  readonly run_id: string;
  readonly generation: number;
  readonly interval: DataInterval;
  /** The fingerprint of its rows, as the manifest has it. */
  readonly fingerprint: object;
  readonly columns: readonly ExportedColumn[];
  /** Whether the columns have the sort keys of the rows. */
  readonly hasKeys: boolean;
  /** The files of its manifest. */
  readonly files: readonly CompletedFile[];
  /** Files of former generations whose rows the interval still needs. They stay, as far as the table has them. */
  readonly earlier: readonly EarlierFile[];
  /** The files of the manifest that it replaces; null if it replaces none. */
  readonly replaced: ReplacedFiles | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The files of the manifest that is replaced. */
export interface ReplacedFiles {
  readonly files: readonly CompletedFile[];
  /** Whether the journal says that the table has them. Then it is an error if it has not. */
  readonly areInTable: boolean;
  /** Whether nobody knows if the table has them, because the manifest was found in the bucket. */
  readonly areUnknown: boolean;
  /** Whether they are files that a table can have. */
  readonly canBeAdded: boolean;
}

/** A commit that is to be written. */
export interface TableChange {
  readonly version: number;
  readonly text: string;
  readonly adds: number;
  readonly removes: number;
}

/** A commit that is in the log. */
export interface FoundCommit {
  readonly version: number;
  readonly etag: string;
  /** The run that wrote it and its generation; null if exportd did not write it. */
  readonly publication: { readonly run_id: string; readonly generation: number } | null;
  /** Whether it only adds and removes files for the export: the next version then depends on nothing of it. */
  readonly isPlain: boolean;
}

/** A file of a table. */
export interface TableFile {
  readonly key: string;
  readonly bytes: number;
}

/** The newest version of a table. */
export interface TableHead {
  readonly version: number;
  /** The ETags of the newest commits by version. */
  readonly etags: ReadonlyMap<number, string>;
  /** The files of the table. */
  live(): IterableIterator<TableFile>;
}
