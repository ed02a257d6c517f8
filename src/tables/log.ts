/**
 * The log of a Delta table whose only writer is exportd. A version is one object, `_delta_log/<version>.json`, which is created
 * once: of two writers one gets the version, and the other reads what it lost to.
 */
import { bounds, boundText } from '../config/bounds.ts';
import type { DestinationError } from '../destination/destination.ts';
import type { ListedTableObject, TableStore } from '../destination/table_store.ts';
import { type ParsedAction, parseCommit } from './actions.ts';
import { decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';
import { applyActions, emptyState, type TableState } from './state.ts';
import { tableError } from './table_error.ts';

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

/**
 * Reads the newest version: a checkpoint and the commits after it. Null if there is no table.
 * @throws DestinationError `TableDamaged`, `TableTooLarge`
 */
export async function readSnapshot(store: TableStore, signal: AbortSignal): Promise<Snapshot | null> {
  const hint = parseHint((await store.read(lastCheckpointName, signal))?.bytes);
  let listed = await store.list(logFolder, hint === null ? '' : padded(hint), signal);
  if (hint !== null && !listed.some(({ name }) => name === checkpointName(hint)))
    listed = await store.list(logFolder, '', signal);
  const checkpoint = versionsIn(listed, checkpointPattern).at(-1)?.version ?? null;
  const commits = versionsIn(listed, commitPattern);
  const newer = commits.filter(({ version }) => version > (checkpoint ?? -1));
  if (checkpoint === null && newer.length === 0) return null;
  const state = checkpoint === null ? emptyState() : await readCheckpoint(store, checkpoint, signal);
  let version = checkpoint ?? -1;
  let bytes = 0;
  for (const commit of newer) {
    if (commit.version !== version + 1) throw versionMissing(store, version + 1);
    const object = await store.read(commit.object.name, signal);
    if (!object) throw versionMissing(store, commit.version);
    bytes += object.bytes.length;
    if (bytes > bounds.checkpoint.max)
      throw tableError(
        'TableTooLarge',
        `The log of the table ${store.name} has more than ${boundText(bounds.checkpoint)} after its last checkpoint.`,
      );
    applyActions(state, parseCommit(object.bytes.toString(), store.nameOf(commit.object.name)));
    version = commit.version;
  }
  if (!state.metaData || !state.protocol)
    throw tableError('TableDamaged', `The log of the table ${store.name} has no schema or no protocol.`);
  const etags = new Map(commits.map((commit) => [commit.version, commit.object.etag]));
  return { version, checkpoint, state, etags };
}

/** The version of the last checkpoint; null without one that can be used. */
function parseHint(bytes: Buffer | undefined): number | null {
  if (!bytes || bytes.length > maxHintBytes) return null;
  try {
    const { version } = JSON.parse(bytes.toString()) as { version?: unknown };
    return typeof version === 'number' && Number.isSafeInteger(version) && version >= 0 ? version : null;
  } catch {
    return null;
  }
}

/** Above what any writer has. */
const maxHintBytes = 65_536;

/** The objects of a list that match, with their versions, in ascending order. */
const versionsIn = (
  listed: readonly ListedTableObject[],
  pattern: RegExp,
): { readonly version: number; readonly object: ListedTableObject }[] =>
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

/** What a commit is to exportd. */
interface CommitSummary {
  /** The run that wrote it and its generation; null if no run of exportd did. */
  readonly publication: { readonly run_id: string; readonly generation: number } | null;
  /** The repair that wrote it; null if none did. */
  readonly repair_id: string | null;
  /** Whether it only adds and removes files for the export: the next version then depends on nothing of it. */
  readonly isPlain: boolean;
  readonly adds: number;
  readonly removes: number;
}

/** A commit that is in the log. */
export interface FoundCommit extends CommitSummary {
  readonly version: number;
  readonly etag: string;
}

/** What the actions of a commit say. */
export function summaryOf(actions: readonly ParsedAction[]): CommitSummary {
  const { run_id, generation, repair_id } = actions.find(({ commitInfo }) => commitInfo)?.commitInfo ?? {};
  const publication = run_id === undefined || generation === undefined ? null : { run_id, generation };
  return {
    publication,
    repair_id: repair_id ?? null,
    isPlain: publication !== null && actions.every(({ metaData, protocol }) => !metaData && !protocol),
    adds: actions.filter(({ add }) => add).length,
    removes: actions.filter(({ remove }) => remove).length,
  };
}

/** Reads the commit of a version; null if there is none. @throws DestinationError `TableDamaged` */
export async function readCommit(
  store: TableStore,
  version: number,
  signal: AbortSignal,
): Promise<FoundCommit | null> {
  const found = await readActions(store, version, signal);
  return found && { version, etag: found.etag, ...summaryOf(found.actions) };
}

/** Reads the actions of a commit; null if there is none. @throws DestinationError `TableDamaged` */
export async function readActions(store: TableStore, version: number, signal: AbortSignal) {
  const name = commitName(version);
  const object = await store.read(name, signal);
  return object && { etag: object.etag, actions: parseCommit(object.bytes.toString(), store.nameOf(name)) };
}

/** @returns the ETag; null if the version exists, which an earlier request of this commit may have made */
export const writeCommit = (
  store: TableStore,
  { version, text }: { readonly version: number; readonly text: string },
  signal: AbortSignal,
): Promise<string | null> => store.create(commitName(version), Buffer.from(text), signal);

async function readCheckpoint(store: TableStore, version: number, signal: AbortSignal): Promise<TableState> {
  const name = store.nameOf(checkpointName(version));
  const object = await store.read(checkpointName(version), signal);
  if (!object) throw tableError('TableDamaged', `The checkpoint ${name} of the table is missing.`);
  return decodeCheckpoint(object.bytes, name);
}

/** Writes the checkpoint of a version, at which readers start from then on. */
export async function writeCheckpoint(
  store: TableStore,
  { version, state }: Pick<Snapshot, 'version' | 'state'>,
  signal: AbortSignal,
): Promise<void> {
  const { bytes, actions } = encodeCheckpoint(state, Date.now() - store.fileRetentionMs);
  // Another worker writes the same.
  await store.replace(checkpointName(version), bytes, signal);
  const last = { version, size: actions, sizeInBytes: bytes.length, numOfAddFiles: state.live.size };
  await store.replace(lastCheckpointName, Buffer.from(JSON.stringify(last)), signal);
}
