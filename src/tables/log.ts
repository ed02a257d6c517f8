/**
 * The log of a Delta table whose only writer is exportd. A version is one object, `_delta_log/<version>.json`, which is created
 * once: of two writers one gets the version, and the other reads what it lost to.
 */
import { bounds } from '../config/bounds.ts';
import type { DestinationError } from '../destination/destination.ts';
import { type ListedObject, type ReadingBudget, readingBudget } from '../destination/folder_store.ts';
import type { TableStore } from './table_store.ts';
import {
  ForeignBytesRefused,
  ForeignBytesTooCostly,
  type ForeignParser,
  foreignParser,
  isShort,
} from '../foreign_bytes/foreign_bytes.ts';
import type { NamedBytes } from './actions.ts';
import { encodeCheckpoint } from './checkpoint.ts';
import { type CommitSummary, foldLog, type LogBytes, summarizeCommit } from './read_log.ts';
import type { TableState } from './state.ts';
import { tableError } from './table_error.ts';
import { isErrorType } from '../destination/errors.ts';

const logFolder = '_delta_log/';
const lastCheckpointName = `${logFolder}_last_checkpoint`;
const padded = (version: number): string => String(version).padStart(20, '0');
const commitName = (version: number): string => `${logFolder}${padded(version)}.json`;
const checkpointName = (version: number): string => `${logFolder}${padded(version)}.checkpoint.parquet`;
const commitPattern = /^_delta_log\/(\d{20})\.json$/;
const checkpointPattern = /^_delta_log\/(\d{20})\.checkpoint\.parquet$/;

/** The newest version of a table. */
export interface Snapshot {
  readonly version: number;
  /** The version of the checkpoint that it was read from; null without one. */
  readonly checkpoint: number | null;
  readonly state: TableState;
  /** The ETags of the newest commits by version. */
  readonly etags: ReadonlyMap<number, string>;
}

const tableState = foreignParser<typeof foldLog>('state of a table');
const commitSummary = foreignParser<typeof summarizeCommit>('commit of a table');

/**
 * Parses objects of a log in a process of their own.
 * @throws DestinationError `TableDamaged`, `TableTooLarge`
 */
export async function parseLog<Input, Output>(
  store: TableStore,
  parser: ForeignParser<Input, Output>,
  input: Input,
): Promise<Output> {
  try {
    return await store.foreign.parse(parser, input);
  } catch (error) {
    if (error instanceof ForeignBytesTooCostly)
      throw tableError('TableTooLarge', `The log of the table ${store.name} ${error.message}.`);
    if (error instanceof ForeignBytesRefused && error.error.type !== null)
      throw tableError(error.error.type, error.message);
    throw error;
  }
}

/** The objects that make the newest version of a table, and what is known of it without parsing them. */
interface NewestLog extends Omit<Snapshot, 'state'> {
  readonly log: LogBytes;
}

/**
 * Reads the objects of the newest version: a checkpoint and the commits after it. Null if there is no table.
 * @throws DestinationError `TableDamaged`, `TableTooLarge`
 */
export async function readLogBytes(store: TableStore, signal: AbortSignal): Promise<NewestLog | null> {
  const hint = await readHint(store, signal);
  let listed = await store.list(logFolder, hint === null ? '' : padded(hint), signal);
  if (hint !== null && !listed.some(({ name }) => name === checkpointName(hint)))
    listed = await store.list(logFolder, '', signal);
  const checkpoint = versionsIn(listed, checkpointPattern).at(-1)?.version ?? null;
  const commits = versionsIn(listed, commitPattern);
  const newer = commits.filter(({ version }) => version > (checkpoint ?? -1));
  if (checkpoint === null && newer.length === 0) return null;
  const budget = readingBudget(bounds.tableLogBytes);
  const start =
    checkpoint === null ? null : await readObject(store, checkpointName(checkpoint), budget, signal);
  if (checkpoint !== null && !start)
    throw tableError(
      'TableDamaged',
      `The checkpoint ${store.nameOf(checkpointName(checkpoint))} of the table is missing.`,
    );
  const read: NamedBytes[] = [];
  let version = checkpoint ?? -1;
  for (const commit of newer) {
    if (commit.version !== version + 1) throw versionMissing(store, version + 1);
    const object = await readObject(store, commit.object.name, budget, signal);
    if (!object) throw versionMissing(store, commit.version);
    read.push(object);
    version = commit.version;
  }
  const etags = new Map(commits.map((commit) => [commit.version, commit.object.etag]));
  return { version, checkpoint, etags, log: { checkpoint: start, commits: read } };
}

async function readObject(
  store: TableStore,
  name: string,
  budget: ReadingBudget,
  signal: AbortSignal,
): Promise<(NamedBytes & { readonly etag: string }) | null> {
  const object = await store.read(name, signal, budget);
  return object && { name: store.nameOf(name), ...object };
}

/**
 * Reads the newest version of a table. Null if there is no table.
 * @throws DestinationError `TableDamaged`, `TableTooLarge`
 */
export async function readSnapshot(store: TableStore, signal: AbortSignal): Promise<Snapshot | null> {
  const found = await readLogBytes(store, signal);
  if (!found) return null;
  const { log, ...known } = found;
  return { ...known, state: await stateOf(store, log) };
}

/** Whether commits are short together, and parsed where they are: a small table costs no process. */
export const isShortLog = ({ checkpoint, commits }: LogBytes): boolean =>
  checkpoint === null && isShort({ length: commits.reduce((sum, { bytes }) => sum + bytes.length, 0) });

const stateOf = (store: TableStore, log: LogBytes): Promise<TableState> =>
  isShortLog(log) ? foldLog(log) : parseLog(store, tableState, log);

/** The state of a table that starts with this commit. @throws DestinationError `TableDamaged`, `TableTooLarge` */
export async function readFirstState(
  store: TableStore,
  version: number,
  signal: AbortSignal,
): Promise<TableState> {
  const commit = await readObject(store, commitName(version), readingBudget(bounds.tableLogBytes), signal);
  if (!commit) throw versionMissing(store, version);
  return stateOf(store, { checkpoint: null, commits: [commit] });
}

/** The version of the last checkpoint; null without one that can be used. */
async function readHint(store: TableStore, signal: AbortSignal): Promise<number | null> {
  try {
    // Short, so that it is parsed here.
    const object = await store.read(lastCheckpointName, signal, readingBudget(bounds.tableHint));
    const { version } = JSON.parse(object?.bytes.toString() ?? '{}') as { version?: unknown };
    return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || isErrorType(error, 'TableTooLarge'))
      return null;
    throw error;
  }
}

/** The objects of a list that match, with their versions, in ascending order. */
const versionsIn = (
  listed: readonly ListedObject[],
  pattern: RegExp,
): { readonly version: number; readonly object: ListedObject }[] =>
  listed
    .flatMap((object) => {
      const [, digits] = pattern.exec(object.name) ?? [];
      return digits === undefined ? [] : [{ version: Number(digits), object }];
    })
    .sort((one, other) => one.version - other.version);

export const versionMissing = (store: TableStore, version: number): DestinationError =>
  tableError(
    'TableDamaged',
    `The log of the table ${store.name} lacks version ${version}. Something else has deleted it: restore it, or run "exportd table repair".`,
  );

/** Lists the commits and checkpoints of a table in the order of their versions. */
export async function listLog(store: TableStore, signal: AbortSignal) {
  const listed = await store.list(logFolder, '', signal);
  return {
    commits: versionsIn(listed, commitPattern),
    checkpoints: versionsIn(listed, checkpointPattern),
  };
}

/** The newest version that exists, also of a table that cannot be read; -1 without one. */
export const newestVersion = async (store: TableStore, signal: AbortSignal): Promise<number> =>
  (await listLog(store, signal)).commits.at(-1)?.version ?? -1;

/** A commit that is in the log. */
export interface FoundCommit extends CommitSummary {
  readonly version: number;
  readonly etag: string;
}

/**
 * Reads the commit of a version; null if there is none.
 * @param budget for commits that are read together
 * @throws DestinationError `TableDamaged`, `TableTooLarge`
 */
export async function readCommit(
  store: TableStore,
  version: number,
  signal: AbortSignal,
  budget = readingBudget(bounds.tableLogBytes),
): Promise<FoundCommit | null> {
  const found = await readObject(store, commitName(version), budget, signal);
  if (!found) return null;
  const { etag, ...commit } = found;
  const summary = isShort(commit.bytes)
    ? summarizeCommit(commit)
    : await parseLog(store, commitSummary, commit);
  return { version, etag, ...summary };
}

/** @returns the ETag; null if the version exists, which an earlier request of this commit may have made */
export const writeCommit = (
  store: TableStore,
  { version, text }: { readonly version: number; readonly text: string },
  signal: AbortSignal,
): Promise<string | null> => store.create(commitName(version), Buffer.from(text), signal);

/** Writes the checkpoint of a version, at which readers start from then on. */
export async function writeCheckpoint(
  store: TableStore,
  { version, state }: Pick<Snapshot, 'version' | 'state'>,
  signal: AbortSignal,
): Promise<void> {
  const { bytes, actions } = encodeCheckpoint(
    state,
    Date.now() - store.settings.EXPORTD_TABLE_FILE_RETENTION,
  );
  // Another worker writes the same.
  await store.replace(checkpointName(version), bytes, signal);
  const last = { version, size: actions, sizeInBytes: bytes.length, numOfAddFiles: state.live.size };
  await store.replace(lastCheckpointName, Buffer.from(JSON.stringify(last)), signal);
}
