/**
 * A Delta table whose only writer is exportd. A version is one object, `_delta_log/<version>.json`, which is created once: of
 * two writers one gets the version, and the other reads what it lost to. The protocol is 1/2, which every reader knows.
 */
import type { ListedTableObject, TableStore } from '../destination/table_store.ts';
import { bounds, boundText, safeText } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import { partitionNamesOf, partitionValuesOf } from '../destination/keys.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { decodeCheckpoint, encodeCheckpoint } from './delta_checkpoint.ts';
import {
  type Action,
  type AddAction,
  applyActions,
  emptyState,
  encodePath,
  fieldsOf,
  formatCommit,
  parseCommit,
  type TableState,
  withColumns,
} from './delta_state.ts';
import {
  type AddedFile,
  changedFiles,
  type FoundCommit,
  type TableChange,
  type TableDescription,
  tableError,
  type TableHead,
  type TableLog,
  type TablePublication,
  type TableRepair,
  type TableVersion,
  withPartitions,
} from './table_log.ts';

/** How long the log stays before a checkpoint, in milliseconds. */
const logRetentionMs = 30 * 86_400_000;

const logFolder = '_delta_log/';
const lastCheckpointName = `${logFolder}_last_checkpoint`;
const padded = (version: number): string => String(version).padStart(20, '0');
const commitName = (version: number): string => `${logFolder}${padded(version)}.json`;
const checkpointName = (version: number): string => `${logFolder}${padded(version)}.checkpoint.parquet`;
const commitPattern = /^_delta_log\/(\d{20})\.json$/;
const checkpointPattern = /^_delta_log\/(\d{20})\.checkpoint\.parquet$/;

/** The newest version of a Delta table. */
interface DeltaHead extends TableHead {
  readonly state: TableState;
  /** The version of the checkpoint that it was read from; null without one. */
  readonly checkpoint: number | null;
}

/** A commit: the lines of its object. */
interface DeltaChange extends TableChange {
  readonly text: string;
}

/** Opens the Delta table in the folder of a store. Sends no request yet. */
export function openDeltaTable(store: TableStore): TableLog<DeltaHead, DeltaChange> {
  /** Reads the newest version: a checkpoint and the commits after it. Null if there is no table. */
  const readHead = async (signal: AbortSignal): Promise<DeltaHead | null> => {
    const hint = parseHint((await store.read(lastCheckpointName, signal))?.bytes);
    let listed = await store.list(logFolder, hint === null ? '' : padded(hint), signal);
    if (hint !== null && !listed.some(({ name }) => name === checkpointName(hint)))
      listed = await store.list(logFolder, '', signal);
    const checkpoint = versionsOf(listed, checkpointPattern).at(-1)?.version ?? null;
    const commits = versionsOf(listed, commitPattern);
    const newer = commits.filter(({ version }) => version > (checkpoint ?? -1));
    if (checkpoint === null && newer.length === 0) return null;
    const state =
      checkpoint === null ? emptyState() : await readCheckpoint(store, checkpointName(checkpoint), signal);
    let version = checkpoint ?? -1;
    let bytes = 0;
    for (const commit of newer) {
      if (commit.version !== version + 1) throw incomplete(store, version + 1);
      const object = await store.read(commit.object.name, signal);
      if (!object) throw incomplete(store, commit.version);
      bytes += object.bytes.length;
      if (bytes > bounds.checkpoint.max)
        throw tableError(
          'TableTooLarge',
          `The log of the table ${store.nameOf('')} has more than ${boundText(bounds.checkpoint)} after its last checkpoint.`,
        );
      applyActions(state, parseCommit(object.bytes.toString(), store.nameOf(commit.object.name)));
      version = commit.version;
    }
    if (!state.metaData || !state.protocol)
      throw tableError(
        'TableDamaged',
        `The log of the table ${store.nameOf('')} has no schema or no protocol.`,
      );
    const etags = new Map(commits.map((commit) => [commit.version, commit.object.etag]));
    return {
      version,
      checkpoint,
      state,
      etags,
      *live() {
        for (const [name, { size, tags }] of state.live)
          yield { key: `${store.root}/${name}`, bytes: size, interval: intervalOf(tags) };
      },
    };
  };

  const listVersions = async (signal: AbortSignal) =>
    versionsOf(await store.list(logFolder, '', signal), commitPattern);
  return {
    location: store.location,
    name: store.nameOf('').replace(/\/$/, ''),
    root: store.root,
    requireConditionalWrites: store.requireConditionalWrites,
    head: readHead,
    readCommit: async (version, signal) => {
      const object = await store.read(commitName(version), signal);
      return (
        object && {
          version,
          etag: object.etag,
          ...summaryOf(parseCommit(object.bytes.toString(), commitName(version))),
        }
      );
    },
    change: (head, publication) => changeOf(store, head, publication),
    addition: (version, publication) => {
      const adds = publication.files.map((file) => addOf(store, publication, file));
      return toChange(version, publication, writeOf(publication), [], adds, []);
    },
    commit: ({ version, text }, signal) => store.create(commitName(version), Buffer.from(text), signal),
    isMaintained: (version) => version > 0 && version % store.checkpointInterval === 0,
    maintain: async (signal) => {
      const head = await readHead(signal);
      if (!head) return null;
      requireProtocol(store, head);
      if (head.version !== head.checkpoint) await writeCheckpoint(store, head, signal);
      await deleteOldLog(store, head.version, signal);
      return head;
    },
    describe: (head) => describe(store, head),
    history: async ({ before, limit }, signal) => {
      const listed = await listVersions(signal);
      const wanted = listed.filter(({ version }) => before === null || version < before).slice(-limit);
      const versions: TableVersion[] = [];
      for (let at = 0; at < wanted.length; at += maxReads)
        versions.push(
          ...(await Promise.all(
            wanted.slice(at, at + maxReads).map((found) => readVersion(store, found, signal)),
          )),
        );
      return versions.reverse();
    },
    newestVersion: async (signal) => (await listVersions(signal)).at(-1)?.version ?? -1,
    repair: (head, version, repair) => repairOf(store, head, version, repair),
    finishRepair: async (version, signal) => {
      const name = commitName(version);
      const object = await store.read(name, signal);
      if (!object) throw incomplete(store, version);
      const actions = parseCommit(object.bytes.toString(), store.nameOf(name));
      // It has the whole table.
      if (actions.some((action) => action.protocol)) {
        const state = emptyState();
        applyActions(state, actions);
        await writeCheckpoint(store, { version, state }, signal);
        return;
      }
      const head = await readHead(signal);
      if (head) await writeCheckpoint(store, head, signal);
    },
  };
}

/** Commits that are read at a time. */
const maxReads = 8;

/** What a person sees of a name or type that another program wrote. */
const shownText = (text: string): string => safeText(text).slice(0, 200);

function describe(store: TableStore, { version, checkpoint, state }: DeltaHead): TableDescription {
  let bytes = 0;
  let rows: number | null = 0;
  for (const { size, stats } of state.live.values()) {
    bytes += size;
    const counted = rowsIn(stats);
    rows = rows === null || counted === null ? null : rows + counted;
  }
  const columns = fieldsOf(state.metaData?.schemaString ?? '');
  return {
    ...{ location: store.nameOf('').replace(/\/$/, ''), version, checkpoint },
    ...{ files: state.live.size, rows, bytes },
    columns: columns.slice(0, bounds.queryColumns.max).map(({ name, type }) => ({
      name: shownText(name),
      type: typeof type === 'string' ? shownText(type) : 'structure',
    })),
    partition_columns: (state.metaData?.partitionColumns ?? [])
      .map(shownText)
      .slice(0, bounds.queryColumns.max),
    protocol: {
      reader: state.protocol?.minReaderVersion ?? 0,
      writer: state.protocol?.minWriterVersion ?? 0,
    },
  };
}

function rowsIn(stats: string | null | undefined): number | null {
  try {
    const { numRecords } = JSON.parse(stats ?? '{}') as { readonly numRecords?: unknown };
    return typeof numRecords === 'number' ? numRecords : null;
  } catch {
    return null;
  }
}

async function readVersion(
  store: TableStore,
  { version, object }: { readonly version: number; readonly object: ListedTableObject },
  signal: AbortSignal,
): Promise<TableVersion> {
  const known = { version, committed_at: object.modified_at.toISOString() };
  const nothing = { description: null, run_id: null, generation: null, interval: null, adds: 0, removes: 0 };
  try {
    const read = await store.read(object.name, signal);
    if (!read) return { ...known, ...nothing, writer: 'unknown' };
    const actions = parseCommit(read.bytes.toString(), object.name);
    const { publication, repair_id, adds, removes } = summaryOf(actions);
    const info = actions.find(({ commitInfo }) => commitInfo)?.commitInfo;
    if (publication)
      return {
        ...{ ...known, ...nothing, writer: 'run', ...publication, adds, removes },
        interval: info?.interval ?? null,
      };
    if (repair_id !== null) return { ...known, ...nothing, writer: 'repair', adds, removes };
    const description = [info?.engineInfo, info?.operation].filter((part) => part !== undefined).join(', ');
    return {
      ...{ ...known, ...nothing, writer: 'other', adds, removes },
      description: description === '' ? null : shownText(description),
    };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DestinationError) || error.transient) throw error;
    return { ...known, ...nothing, writer: 'unknown', description: error.message };
  }
}

async function readCheckpoint(store: TableStore, name: string, signal: AbortSignal): Promise<TableState> {
  const object = await store.read(name, signal);
  if (!object)
    throw tableError('TableDamaged', `The checkpoint ${store.nameOf(name)} of the table is missing.`);
  return decodeCheckpoint(object.bytes, store.nameOf(name));
}

async function writeCheckpoint(
  store: TableStore,
  { version, state }: Pick<DeltaHead, 'version' | 'state'>,
  signal: AbortSignal,
): Promise<void> {
  const { bytes, actions } = encodeCheckpoint(state, Date.now() - store.fileRetentionMs);
  // Another worker writes the same.
  await store.replace(checkpointName(version), bytes, signal);
  const last = { version, size: actions, sizeInBytes: bytes.length, numOfAddFiles: state.live.size };
  await store.replace(lastCheckpointName, Buffer.from(JSON.stringify(last)), signal);
}

/** The checkpoint before the newest one stays too: a reader may have started with it. */
async function deleteOldLog(store: TableStore, version: number, signal: AbortSignal): Promise<void> {
  const before = Date.now() - logRetentionMs;
  const needed = version - 2 * store.checkpointInterval;
  const listed = await store.list(logFolder, '', signal);
  for (const pattern of [commitPattern, checkpointPattern])
    for (const { version: old, object } of versionsOf(listed, pattern))
      if (old < needed && object.modified_at.getTime() < before) await store.delete(object.name, signal);
}

/** Above what any writer has. */
const maxHintBytes = 65_536;

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

/** The objects of a list that match, with their versions, in ascending order. */
const versionsOf = (
  listed: readonly ListedTableObject[],
  pattern: RegExp,
): { readonly version: number; readonly object: ListedTableObject }[] =>
  listed
    .flatMap((object) => {
      const [, digits] = pattern.exec(object.name) ?? [];
      return digits === undefined ? [] : [{ version: Number(digits), object }];
    })
    .sort((one, other) => one.version - other.version);

const incomplete = (store: TableStore, version: number) =>
  tableError(
    'TableDamaged',
    `The log of the table ${store.nameOf('')} lacks version ${version}. Something else has deleted it: restore it, or run "exportd table repair".`,
  );

/** What a commit is to exportd. */
function summaryOf(actions: ReturnType<typeof parseCommit>): Omit<FoundCommit, 'version' | 'etag'> {
  const { run_id, generation, repair_id } = actions.find(({ commitInfo }) => commitInfo)?.commitInfo ?? {};
  const publication = run_id === undefined || generation === undefined ? null : { run_id, generation };
  const count = (kind: 'add' | 'remove'): number => actions.filter((action) => action[kind]).length;
  return {
    publication,
    repair_id: repair_id ?? null,
    isPlain: publication !== null && actions.every(({ metaData, protocol }) => !metaData && !protocol),
    ...{ adds: count('add'), removes: count('remove') },
  };
}

/** The protocol of the tables that exportd writes. Readers and writers of any version know it. */
const protocol = { minReaderVersion: 1, minWriterVersion: 2 };

/** @throws DestinationError `TableProtocol` */
function requireProtocol(store: TableStore, { state }: DeltaHead): void {
  const { minReaderVersion = 0, minWriterVersion = 0 } = state.protocol ?? {};
  if (minReaderVersion > protocol.minReaderVersion || minWriterVersion > protocol.minWriterVersion)
    throw tableError(
      'TableProtocol',
      `The table ${store.nameOf('')} was changed to protocol ${minReaderVersion}/${minWriterVersion} by another writer, and exportd writes ${protocol.minReaderVersion}/${protocol.minWriterVersion}. exportd must be its only writer: use another prefix.`,
    );
}

/** @throws DestinationError when exportd may not commit to the table */
function requireWritable(store: TableStore, head: DeltaHead, batchExportId: string): void {
  requireProtocol(store, head);
  const { state } = head;
  if (state.metaData?.id !== batchExportId)
    throw tableError(
      'TableOfAnother',
      `The table ${store.nameOf('')} belongs to another export or another writer. Use another prefix.`,
    );
  const found = state.metaData.partitionColumns.map(shownText).join(', ');
  const wanted = partitionNamesOf(store.partitionColumns).join(', ');
  if (found !== wanted)
    throw tableError(
      'TableProtocol',
      `The table ${store.nameOf('')} has ${found === '' ? 'no partitions' : `the partitions ${found}`}, and partition_by of the export ${wanted === '' ? 'has none' : `gives ${wanted}`}. A table keeps its partitions: use another prefix.`,
    );
}

/** The schema of a table after files with these columns were added. @throws DestinationError `TableColumnConflict` */
const schemaWith = (
  { partitionColumns }: TableStore,
  former: string | null,
  columns: readonly ExportedColumn[],
): string => withColumns(former, withPartitions(partitionColumns, columns));

function changeOf(
  store: TableStore,
  head: DeltaHead | null,
  publication: TablePublication,
): DeltaChange | null {
  if (head) requireWritable(store, head, publication.batch_export_id);
  const state = head?.state ?? emptyState();
  const changed = changedFiles(store.nameOf(''), [...(head?.live() ?? [])], publication);
  if (changed.adds.length === 0 && changed.removes.length === 0) return null;
  const adds = changed.adds.map((file) => addOf(store, publication, file));
  const kept = new Set(publication.kept.map(({ key }) => key));
  const removes = changed.removes.flatMap((key) => {
    const file = state.live.get(nameIn(store, key) ?? '');
    return file ? [{ ...file, ...(kept.has(key) && { removedAt: neverVacuumed }) }] : [];
  });
  const isNew = !head;
  const schemaString = schemaWith(
    store,
    state.metaData?.schemaString ?? null,
    adds.length === 0 && !isNew ? [] : publication.columns,
  );
  const metaData = state.metaData ?? newMetaData(store, publication, schemaString);
  const definition: Action[] = [
    ...(isNew ? [{ protocol }] : []),
    ...(isNew || schemaString !== metaData.schemaString ? [{ metaData: { ...metaData, schemaString } }] : []),
  ];
  return toChange((head?.version ?? -1) + 1, publication, writeOf(publication), definition, adds, removes);
}

/** A file that was removed at this time, in milliseconds, is never old enough for VACUUM. */
const neverVacuumed = Date.parse('9999-12-31T00:00:00.000Z');

function repairOf(
  store: TableStore,
  head: DeltaHead | null,
  version: number,
  { batch_export_id, repair_id, columns, adds, removes, now }: TableRepair,
): DeltaChange {
  if (head) requireWritable(store, head, batch_export_id);
  const live = head?.state.live ?? new Map<string, AddAction>();
  const former = head?.state.metaData ?? null;
  const schemaString = schemaWith(store, former?.schemaString ?? null, columns);
  const metaData = former ?? newMetaData(store, { batch_export_id, now }, schemaString);
  const definition: Action[] = [
    ...(head ? [] : [{ protocol }]),
    ...(schemaString === former?.schemaString ? [] : [{ metaData: { ...metaData, schemaString } }]),
  ];
  return toChange(
    version,
    { batch_export_id, now },
    { operation: 'REPAIR', repair_id },
    definition,
    adds.map((file) => addOf(store, { ...file, now }, file)),
    removes.flatMap((key) => live.get(nameIn(store, key) ?? '') ?? []),
  );
}

const newMetaData = (
  store: TableStore,
  { batch_export_id, now }: Pick<TablePublication, 'batch_export_id' | 'now'>,
  schemaString: string,
) => ({
  id: batch_export_id,
  name: store.root.split('/').at(-1) ?? '',
  format: { provider: 'parquet', options: {} },
  schemaString,
  partitionColumns: [...partitionNamesOf(store.partitionColumns)],
  configuration: {
    'delta.deletedFileRetentionDuration': hoursOf(store.fileRetentionMs),
    'delta.logRetentionDuration': hoursOf(logRetentionMs),
    // deltalake takes a missing minimum of any other column for one that excludes every value.
    'delta.dataSkippingStatsColumns': insertedAt,
  },
  createdTime: now,
});

const hoursOf = (ms: number): string => `interval ${Math.ceil(ms / 3_600_000)} hours`;

/** What the commit of a run says of itself. */
const writeOf = ({ run_id, generation, interval, fingerprint }: TablePublication): object => ({
  operation: 'WRITE',
  ...{ run_id, generation, interval, fingerprint },
});

function toChange(
  version: number,
  { batch_export_id, now }: Pick<TablePublication, 'batch_export_id' | 'now'>,
  info: object,
  definition: readonly Action[],
  adds: readonly AddAction[],
  removes: readonly (AddAction & { readonly removedAt?: number })[],
): DeltaChange {
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
        ...{ path, deletionTimestamp: removedAt, dataChange: true },
        ...{ extendedFileMetadata: true, partitionValues, size },
      },
    })),
    ...adds.map((add) => ({ add })),
  ]);
  return { version, text, adds: adds.length, removes: removes.length };
}

/** Tags of files that exportd added: their interval. */
const [startTag, endTag] = ['exportd_interval_start', 'exportd_interval_end'];

function intervalOf(tags: AddAction['tags']): DataInterval | null {
  const [start, end] = [tags?.[startTag], tags?.[endTag]];
  return typeof start === 'string' && typeof end === 'string' ? { start, end } : null;
}

const addOf = (
  store: TableStore,
  {
    interval,
    generation,
    hasKeys,
    now,
  }: Pick<TablePublication, 'interval' | 'generation' | 'hasKeys' | 'now'>,
  file: AddedFile,
): AddAction => ({
  path: encodePath(requiredName(store, file.key)),
  partitionValues: partitionValuesOf(file.key, interval.start, store.partitionColumns),
  size: file.bytes,
  modificationTime: now,
  dataChange: true,
  stats: statsOf(file, hasKeys),
  tags: {
    [startTag]: interval.start,
    [endTag]: interval.end,
    exportd_generation: String(file.generation ?? generation),
  },
});

const insertedAt = '_inserted_at';
const usualTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** The statistics of a file. Its rows are sorted by insertion time, so readers skip it by that. */
function statsOf({ rows, first, last }: AddedFile, hasKeys: boolean): string {
  const isUsual = first && last && usualTime.test(first.inserted_at) && usualTime.test(last.inserted_at);
  if (!hasKeys || !isUsual) return JSON.stringify({ numRecords: rows });
  return JSON.stringify({
    numRecords: rows,
    minValues: { [insertedAt]: first.inserted_at },
    maxValues: { [insertedAt]: last.inserted_at },
    nullCount: { [insertedAt]: 0 },
  });
}

/** The name of a file below the folder of the table; undefined if it is elsewhere. */
const nameIn = ({ root }: TableStore, key: string): string | undefined =>
  key.startsWith(`${root}/`) ? key.slice(root.length + 1) : undefined;

/** @throws DestinationError `TableChanged` when the key is not below the folder of the table */
function requiredName(store: TableStore, key: string): string {
  const name = nameIn(store, key);
  if (name !== undefined) return name;
  throw tableError('TableChanged', `The file ${key} is not in the folder of the table ${store.nameOf('')}.`);
}
