/** Commits of runs to a Delta table: which files they add and remove, and the lines that say so. */
import type { TableStore } from './table_store.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { EarlierFile } from '../domain/earlier_generations.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { type Action, type AddAction, formatCommit } from './actions.ts';
import { addOf, filesOf, type TableFile, type WantedFile } from './files.ts';
import type { Snapshot } from './log.ts';
import { definitionOf, requireWritable } from './metadata.ts';
import { tableError } from './table_error.ts';

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
  /** Whether it is not known if the table has them, because the manifest was found in the bucket. */
  readonly areUnknown: boolean;
  /** Whether they are files that a table can have. */
  readonly canBeAdded: boolean;
}

/** A commit that is to be written. */
export interface NewCommit {
  readonly version: number;
  /** The lines of its object. */
  readonly text: string;
  readonly adds: number;
  readonly removes: number;
}

/** The commit of a run that replaces nothing and has the columns of the table: it adds files, whatever else is there. */
export const additionOf = (store: TableStore, version: number, publication: TablePublication): NewCommit =>
  newCommit(version, publication, {
    info: infoOf(publication),
    definition: [],
    adds: publication.files.map((file) => addOf(store, wantedOf(publication, file), publication.now)),
    removes: [],
  });

/**
 * The commit of a run.
 * @param snapshot null if there is no table
 * @returns null if the table is as the run wants it
 * @throws DestinationError `TableProtocol`, `TableOfAnother`, `TableChanged`, `TableColumnConflict`
 */
export function commitOf(
  store: TableStore,
  snapshot: Snapshot | null,
  publication: TablePublication,
): NewCommit | null {
  if (snapshot) requireWritable(store, snapshot.state, publication.batch_export_id);
  const live = snapshot ? filesOf(store, snapshot.state) : [];
  const changed = changedFiles(store, live, publication);
  if (changed.adds.length === 0 && changed.removes.length === 0) return null;
  const kept = new Set(publication.kept.map(({ key }) => key));
  return newCommit((snapshot?.version ?? -1) + 1, publication, {
    info: infoOf(publication),
    definition: definitionOf(store, snapshot?.state ?? null, {
      ...publication,
      columns: changed.adds.length === 0 ? [] : publication.columns,
    }),
    adds: changed.adds.map((file) => addOf(store, wantedOf(publication, file), publication.now)),
    removes: changed.removes.map(({ key, add }) => ({
      ...add,
      ...(kept.has(key) && { removedAt: neverVacuumed }),
    })),
  });
}

/** A file that was removed at this time, in milliseconds, is never old enough for VACUUM. */
const neverVacuumed = Date.parse('9999-12-31T00:00:00.000Z');

const wantedOf = ({ interval, generation, hasKeys }: TablePublication, file: CompletedFile): WantedFile => ({
  ...file,
  interval,
  generation: file.generation ?? generation,
  hasKeys,
});

/** What the commit of a run says of itself. */
const infoOf = ({ run_id, generation, interval, fingerprint }: TablePublication): object => ({
  operation: 'WRITE',
  run_id,
  generation,
  interval,
  fingerprint,
});

/**
 * Which files a run adds to a table and takes from it. A file that it takes away must be there: after a foreign OPTIMIZE its rows
 * are in another file, and would be there twice.
 * @param live the files of the table
 * @throws DestinationError `TableChanged` when another writer has moved rows that the run replaces or keeps
 */
function changedFiles(
  { name }: TableStore,
  live: readonly TableFile[],
  { files, earlier, replaced, interval }: TablePublication,
): { readonly adds: readonly CompletedFile[]; readonly removes: readonly TableFile[] } {
  const keys = new Set(live.map(({ key }) => key));
  const missing = replaced?.files.find(({ key }) => !keys.has(key));
  const isForeign = replaced?.areUnknown === true && live.some((file) => file.interval === null);
  if (missing && (replaced?.areInTable === true || isForeign))
    throw tableError(
      'TableChanged',
      `The table ${name} no longer has the file ${missing.key}, which this run replaces: another writer, such as OPTIMIZE, has moved its rows. Committing would double them, so nothing was committed. exportd must be the only writer of the table: stop the other one, and run "exportd table repair".`,
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
    removes: live.filter(
      (file) => (former.has(file.key) || isOfInterval(file.interval)) && !kept.has(file.key),
    ),
  };
}

/** What a commit consists of. */
interface CommitParts {
  /** What it says of itself. */
  readonly info: object;
  /** Protocol and metadata, if it changes them. */
  readonly definition: readonly Action[];
  readonly adds: readonly AddAction[];
  /** Files of the table; `removedAt` in milliseconds since 1970, now by default. */
  readonly removes: readonly (AddAction & { readonly removedAt?: number })[];
}

/** Writes the lines of a commit. */
export function newCommit(
  version: number,
  { batch_export_id, now }: Pick<TablePublication, 'batch_export_id' | 'now'>,
  { info, definition, adds, removes }: CommitParts,
): NewCommit {
  const commitInfo = {
    timestamp: now,
    operationParameters: { mode: 'Append' },
    engineInfo: 'exportd',
    isBlindAppend: removes.length === 0,
    ...info,
  };
  const text = formatCommit([
    { commitInfo },
    ...definition,
    // Versions only grow, so that the version of the table is that of the transaction too.
    { txn: { appId: `exportd-${batch_export_id}`, version, lastUpdated: now } },
    ...removes.map(({ path, partitionValues, size, removedAt = now }) => ({
      remove: {
        path,
        deletionTimestamp: removedAt,
        dataChange: true,
        extendedFileMetadata: true,
        partitionValues,
        size,
      },
    })),
    ...adds.map((add) => ({ add })),
  ]);
  return { version, text, adds: adds.length, removes: removes.length };
}
