/** What a table is to exportd: versions that add and remove files, each written once. */
import { DestinationError } from '../destination/destination.ts';
import { type PartitionColumn, partitionNamesOf } from '../destination/keys.ts';
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
  /** Files of former generations that leave the table and are kept in its folder, as a copy for people. */
  readonly kept: readonly EarlierFile[];
  /** The files of the manifest that it replaces; null if it replaces none. */
  readonly replaced: ReplacedFiles | null;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The files of the manifest that is replaced. */
interface ReplacedFiles {
  readonly files: readonly CompletedFile[];
  /** Whether the journal says that the table has them. Then it is an error if it has not. */
  readonly areInTable: boolean;
  /** Whether nobody knows if the table has them, because the manifest was found in the bucket. */
  readonly areUnknown: boolean;
  /** Whether they are files that a table can have. */
  readonly canBeAdded: boolean;
}

/** A file as a table gets it. */
export type AddedFile = Pick<CompletedFile, 'key' | 'rows' | 'bytes' | 'first' | 'last' | 'generation'>;

/** The columns of partitions, which no file has. */
export const partitionFieldsOf = (partitionColumns: readonly PartitionColumn[]): readonly ExportedColumn[] =>
  partitionNamesOf(partitionColumns).map((name) => ({ name, type: partitionTypes[name] }));
const partitionTypes = { date: 'date', hour: 'integer', event_partition: 'text' } as const;

/** The columns of files, and those of the partitions of their table. @throws DestinationError `TableColumnConflict` */
export function withPartitions(
  partitionColumns: readonly PartitionColumn[],
  columns: readonly ExportedColumn[],
): readonly ExportedColumn[] {
  const partitions = partitionFieldsOf(partitionColumns);
  const taken = columns.find(({ name }) =>
    partitions.some((partition) => partition.name === name.toLowerCase()),
  );
  if (taken)
    throw tableError(
      'TableColumnConflict',
      `The export has the column ${taken.name}, which is a partition of its table: readers would find two. Rename the column in the query.`,
    );
  return [...columns, ...partitions];
}

/** Something in the log or the files of a table keeps exportd from committing to it. It stays until a person acts. */
export const tableError = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false });

/** A commit that is to be written. */
export interface TableChange {
  readonly version: number;
  readonly adds: number;
  readonly removes: number;
}

/** A commit that is in the log. */
export interface FoundCommit {
  readonly version: number;
  readonly etag: string;
  /** The run that wrote it and its generation; null if no run of exportd did. */
  readonly publication: { readonly run_id: string; readonly generation: number } | null;
  /** The repair that wrote it; null if none did. */
  readonly repair_id: string | null;
  /** Whether it only adds and removes files for the export: the next version then depends on nothing of it. */
  readonly isPlain: boolean;
  readonly adds: number;
  readonly removes: number;
}

/** A file of a table. */
export interface TableFile {
  readonly key: string;
  readonly bytes: number;
  /** The interval that it was added for; null if exportd did not add it. */
  readonly interval: DataInterval | null;
}

/** The newest version of a table. */
export interface TableHead {
  readonly version: number;
  /** The ETags of the newest commits by version. */
  readonly etags: ReadonlyMap<number, string>;
  /** The files of the table. */
  live(): IterableIterator<TableFile>;
}

/** What a table is, for people. */
export interface TableDescription {
  readonly location: string;
  readonly version: number;
  readonly files: number;
  /** Null if not every file says how many it has. */
  readonly rows: number | null;
  readonly bytes: number;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly partition_columns: readonly string[];
  readonly protocol: { readonly reader: number; readonly writer: number };
  /** The version of the newest checkpoint; null without one. */
  readonly checkpoint: number | null;
}

/** A version of a table, for people. */
export interface TableVersion {
  readonly version: number;
  /** When its object was written. */
  readonly committed_at: string;
  /** What wrote it; `unknown` if its object cannot be read. */
  readonly writer: 'run' | 'repair' | 'other' | 'unknown';
  /** What another writer calls itself and what it did. */
  readonly description: string | null;
  readonly run_id: string | null;
  readonly generation: number | null;
  readonly interval: DataInterval | null;
  readonly adds: number;
  readonly removes: number;
}

/** A file that a table has to have. */
export interface WantedFile extends Pick<CompletedFile, 'key' | 'rows' | 'bytes'> {
  readonly first: CompletedFile['first'];
  readonly last: CompletedFile['last'];
  readonly generation: number;
  readonly interval: DataInterval;
  /** Whether `first` and `last` are the sort keys of columns that the file has. */
  readonly hasKeys: boolean;
}

/** A commit that makes a table what the manifests say. */
export interface TableRepair {
  readonly batch_export_id: string;
  readonly repair_id: string;
  /** The columns of the files that are added. */
  readonly columns: readonly ExportedColumn[];
  readonly adds: readonly WantedFile[];
  /** Keys of files of the table. */
  readonly removes: readonly string[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** A table. All methods throw DestinationError. */
export interface TableLog<Head extends TableHead = TableHead, Change extends TableChange = TableChange> {
  /** Identifies the table: server, bucket and folder. */
  readonly location: string;
  /** Its folder, as messages name it. */
  readonly name: string;
  /** The folder, without a slash at its end. */
  readonly root: string;
  /** Call it before the first commit of an activity. @throws DestinationError `ConditionalWritesMissing` */
  requireConditionalWrites(signal: AbortSignal): Promise<void>;
  /** Reads the newest version; null if there is no table. */
  head(signal: AbortSignal): Promise<Head | null>;
  /** Reads the commit of a version; null if there is none. */
  readCommit(version: number, signal: AbortSignal): Promise<FoundCommit | null>;
  /**
   * Decides what a run changes in the table. A file that it takes away must be there: after a foreign OPTIMIZE its rows are
   * in another file, and would be there twice.
   * @returns null if the table is as the run wants it
   * @throws DestinationError `TableProtocol`, `TableOfAnother`, `TableChanged`, `TableColumnConflict`
   */
  change(head: Head | null, publication: TablePublication): Change | null;
  /** The commit of a run that replaces nothing and has the columns of the table: it adds files, whatever else is there. */
  addition(version: number, publication: TablePublication): Change;
  /** @returns the ETag; null if the version exists, which an earlier request of this commit may have made */
  commit(change: Change, signal: AbortSignal): Promise<string | null>;
  /** Whether a version is one after which the table is to be maintained. */
  isMaintained(version: number): boolean;
  /** Makes the newest version quick to read, and deletes what is older than the retention of the log. */
  maintain(signal: AbortSignal): Promise<Head | null>;
  describe(head: Head): TableDescription;
  /** Reads versions, the newest first. @param before only versions before this one */
  history(
    page: { readonly before: number | null; readonly limit: number },
    signal: AbortSignal,
  ): Promise<TableVersion[]>;
  /** The newest version that exists, also of a table that cannot be read; -1 without one. */
  newestVersion(signal: AbortSignal): Promise<number>;
  /**
   * The commit of a repair.
   * @param head null for a table that does not exist or cannot be read: the repair has all of its files then
   * @throws DestinationError `TableProtocol`, `TableOfAnother`, `TableColumnConflict`
   */
  repair(head: Head | null, version: number, repair: TableRepair): Change;
  /** Makes a repair readable whatever the log before it is. */
  finishRepair(version: number, signal: AbortSignal): Promise<void>;
}

/**
 * Which files a run adds to a table and takes from it. A file that it takes away must be there: after a foreign OPTIMIZE its rows
 * are in another file, and would be there twice.
 * @param table how messages name the table
 * @param live the files of the table
 * @returns `removes`: keys
 * @throws DestinationError `TableChanged` when another writer has moved rows that the run replaces or keeps
 */
export function changedFiles(
  table: string,
  live: readonly Pick<TableFile, 'key' | 'interval'>[],
  { files, earlier, replaced, interval }: TablePublication,
): { readonly adds: readonly AddedFile[]; readonly removes: readonly string[] } {
  const keys = new Set(live.map(({ key }) => key));
  const missing = replaced?.files.find(({ key }) => !keys.has(key));
  const isForeign = replaced?.areUnknown === true && live.some((file) => file.interval === null);
  if (missing && (replaced?.areInTable === true || isForeign))
    throw tableError(
      'TableChanged',
      `The table ${table} no longer has the file ${missing.key}, which this run replaces: another writer, such as OPTIMIZE, has moved its rows. Committing would double them, so nothing was committed. exportd must be the only writer of the table: stop the other one, and run "exportd table repair".`,
    );
  // What stays of former generations, as far as a table can have it.
  const addable = replaced?.canBeAdded === true && !replaced.areInTable ? replaced.files : [];
  const stillNeeded = new Set(earlier.map(({ key }) => key));
  const wanted = [...files, ...addable.filter(({ key }) => stillNeeded.has(key))];
  const kept = new Set([...wanted, ...earlier].map(({ key }) => key));
  const former = new Set(replaced?.files.map(({ key }) => key));
  const isOfInterval = (of: DataInterval | null): boolean =>
    of?.start === interval.start && of.end === interval.end;
  return {
    adds: wanted.filter(({ key }) => !keys.has(key)),
    removes: live.flatMap((file) =>
      (former.has(file.key) || isOfInterval(file.interval)) && !kept.has(file.key) ? [file.key] : [],
    ),
  };
}
