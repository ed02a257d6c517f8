/**
 * An Iceberg table in a REST catalog. A version is a snapshot; its number is the sequence number that Iceberg gives it. The catalog
 * lets a commit pass only if the snapshot before it is still the newest one, and exportd's snapshots say which run they are of.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { bounds, safeText } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import { partitionValuesOf } from '../destination/keys.ts';
import type { IcebergCatalog } from '../destination/iceberg_catalog.ts';
import type { TableStore } from '../destination/table_store.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { fieldIdOf } from '../encoding/parquet/file.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import {
  describeManifest,
  entryStatus,
  formatManifest,
  formatManifestList,
  type ManifestEntry,
  type ManifestFile,
  metadataBudget,
  type MetadataBudget,
  partitionTuple,
  readManifest,
  readManifestList,
} from './iceberg_manifest.ts';
import {
  commitOf,
  currentSchema,
  hasOtherPartitions,
  historyOf,
  type IcebergMetadata,
  type IcebergSnapshot,
  marks,
  parseMetadata,
  specFieldsOf,
  specIdOf,
  summaryOf,
  withFields,
} from './iceberg_metadata.ts';
import {
  type AddedFile,
  changedFiles,
  partitionFieldsOf,
  type TableChange,
  type TableDescription,
  tableError,
  type TableExtent,
  type TableFile,
  type TableHead,
  type TableLog,
  type TableVersion,
  withPartitions,
} from './table_log.ts';

/** The format version of the tables that exportd writes. */
const formatVersion = 2;
/** The property of a table that says which export it is of. */
const ownerProperty = 'exportd.batch-export-id';
const metadataFolder = 'metadata/';

/** Of so many manifests the small ones become one. */
const maxManifests = 100;
const maxMergedBytes = 8 * 1024 * 1024;
/** Objects of metadata that are read or written at a time. */
const maxRequests = 8;

/** The newest snapshot of a table. */
interface IcebergHead extends TableHead {
  readonly metadata: IcebergMetadata;
  readonly history: readonly IcebergSnapshot[];
  readonly manifests: readonly ManifestFile[];
  /** The live files by path; null if they were not read. */
  readonly entries: ReadonlyMap<string, ManifestEntry> | null;
}

type KeyedFile = AddedFile & { readonly hasKeys: boolean };

/** A commit: what its snapshot adds and removes. */
interface IcebergChange extends TableChange {
  /** Null if the table does not exist, or cannot be read and gets all of its files anew. */
  readonly head: IcebergHead | null;
  readonly batchExportId: string;
  readonly columns: readonly ExportedColumn[];
  readonly added: readonly KeyedFile[];
  /** Paths. */
  readonly removed: ReadonlySet<string>;
  readonly summary: Readonly<Record<string, string>>;
  readonly now: number;
}

/** How often a commit whose outcome is unknown is sent, and the pause before the second time in milliseconds. */
const [maxSends, sendPauseMs] = [4, 200];

/** Opens the table of a store in its catalog. Sends no request yet. */
export function openIcebergTable(
  store: TableStore,
  catalog: IcebergCatalog,
): TableLog<IcebergHead, IcebergChange> {
  const location = store.nameOf('').replace(/\/$/, '');
  const bucket = location.slice(0, -store.root.length);
  const name = `${catalog.name} (${location})`;
  const partitions = partitionFieldsOf(store.partitionColumns);
  const specFields = specFieldsOf(partitions);
  /** The key of a file; a file elsewhere has its whole path. */
  const keyOf = (path: string): string => {
    const plain = path.replace(/^s3[an]:/, 's3:');
    return plain.startsWith(bucket) ? plain.slice(bucket.length) : path;
  };

  const readObject = async (path: string, signal: AbortSignal): Promise<Buffer> => {
    const key = keyOf(path);
    if (!key.startsWith(`${store.root}/`))
      throw tableError(
        'TableProtocol',
        `The table ${name} has metadata outside of its folder, such as ${safeText(path).slice(0, 200)}, which another writer has put there. exportd must be the only writer: use another table.`,
      );
    const object = await store.read(key.slice(store.root.length + 1), signal);
    if (!object) throw tableError('TableDamaged', `The object ${path} of the table ${name} is missing.`);
    return object.bytes;
  };
  const readList = async (
    snapshot: IcebergSnapshot | undefined,
    budget: MetadataBudget,
    signal: AbortSignal,
  ): Promise<ManifestFile[]> => {
    const path = snapshot?.['manifest-list'];
    if (path === undefined) {
      if (snapshot)
        throw tableError('TableProtocol', `A snapshot of the table ${name} has no manifest list.`);
      return [];
    }
    return readManifestList(await readObject(path, signal), path, budget);
  };
  /** Reads manifests of files; those of deletions say nothing of them. */
  const readManifests = (
    manifests: readonly ManifestFile[],
    budget: MetadataBudget,
    signal: AbortSignal,
  ): Promise<(readonly [ManifestFile, ManifestEntry[]])[]> =>
    inParallel(
      manifests.filter(({ content }) => content === 0),
      async (manifest) =>
        [manifest, readManifest(await readObject(manifest.manifest_path, signal), manifest, budget)] as const,
    );

  const load = async (signal: AbortSignal): Promise<IcebergMetadata | null> => {
    const found = await catalog.load(signal);
    return found && parseMetadata(found, name);
  };

  const headOf = async (
    metadata: IcebergMetadata,
    extent: TableExtent,
    signal: AbortSignal,
  ): Promise<IcebergHead> => {
    const budget = metadataBudget();
    const history = historyOf(metadata);
    const [newest] = history;
    const manifests = await readList(newest, budget, signal);
    const entries = extent === 'files' ? liveIn(await readManifests(manifests, budget, signal)) : null;
    const current = new Set(history.map((snapshot) => snapshot['snapshot-id']));
    return {
      version: newest?.['sequence-number'] ?? 0,
      nextVersion: metadata['last-sequence-number'] + 1,
      // A snapshot that is no longer in the history was replaced, as by a rollback.
      etags: new Map(
        metadata.snapshots.map((snapshot) => {
          const id = snapshot['snapshot-id'];
          return [snapshot['sequence-number'], current.has(id) ? id : `not current: ${id}`];
        }),
      ),
      ...{ metadata, history, manifests, entries },
      *live(): IterableIterator<TableFile> {
        for (const [path, { data_file }] of required(entries)) {
          const key = keyOf(path);
          yield { key, bytes: data_file.file_size_in_bytes, interval: intervalIn(key) };
        }
      },
    };
  };
  const readHead = async (
    signal: AbortSignal,
    extent: TableExtent = 'files',
  ): Promise<IcebergHead | null> => {
    const metadata = await load(signal);
    return metadata && headOf(metadata, extent, signal);
  };

  /** @throws DestinationError when exportd may not commit to the table */
  const requireWritable = (metadata: IcebergMetadata, batchExportId: string): void => {
    if (metadata.properties[ownerProperty] !== batchExportId)
      throw tableError(
        'TableOfAnother',
        `The table ${name} belongs to another export or another writer. Use another catalog_table.`,
      );
    if (metadata['format-version'] !== formatVersion)
      throw tableError(
        'TableProtocol',
        `The table ${name} was changed to format version ${metadata['format-version']} by another writer, and exportd writes ${formatVersion}. exportd must be its only writer: use another catalog_table.`,
      );
    if (hasOtherPartitions(metadata, specFields))
      throw tableError(
        'TableProtocol',
        `The table ${name} has other partitions than partition_by of the export. A table keeps its partitions: use another catalog_table.`,
      );
  };

  /** The table, which is created if it does not exist. Its columns get their ids with the first commit. */
  const loadOrCreate = async ({ columns, batchExportId }: IcebergChange, signal: AbortSignal) => {
    const fields = withFields([], columns) ?? [];
    const created =
      (await catalog.load(signal)) ??
      (await catalog.create(
        {
          location,
          schema: {
            ...{ type: 'struct', 'schema-id': 0 },
            fields: fields.map((field, index) => ({ ...field, id: index + 1 })),
          },
          'partition-spec': { 'spec-id': 0, fields: [] },
          'write-order': { 'order-id': 0, fields: [] },
          'stage-create': false,
          properties: {
            [ownerProperty]: batchExportId,
            'format-version': String(formatVersion),
            'history.expire.max-snapshot-age-ms': String(store.fileRetentionMs),
            'write.metadata.delete-after-commit.enabled': 'true',
            'write.metadata.previous-versions-max': '100',
          },
        },
        signal,
      )) ??
      (await catalog.load(signal));
    if (!created)
      throw tableError('TableChanged', `The catalog has no table ${name}, and does not create it.`);
    return parseMetadata(created, name);
  };

  /** Writes an object of metadata, whose name nothing else has. */
  const put = async (file: string, bytes: Buffer, signal: AbortSignal): Promise<string> => {
    const object = `${metadataFolder}${file}`;
    await store.replace(object, bytes, signal);
    return store.nameOf(object);
  };

  const entryOf = ({ key, rows, bytes, first, last, hasKeys }: KeyedFile): ManifestEntry => {
    const range = hasKeys ? rangeOf(first, last) : null;
    const id = fieldIdOf(insertedAt);
    return {
      status: entryStatus.added,
      snapshot_id: null,
      sequence_number: null,
      file_sequence_number: null,
      data_file: {
        ...{ content: 0, file_path: `${bucket}${key}`, file_format: 'PARQUET' },
        partition: partitionTuple(
          partitions,
          partitionValuesOf(key, intervalIn(key)?.start, store.partitionColumns),
        ),
        ...{ record_count: rows, file_size_in_bytes: bytes },
        ...(range && {
          value_counts: [{ key: id, value: rows }],
          null_value_counts: [{ key: id, value: 0 }],
          lower_bounds: [{ key: id, value: range[0] }],
          upper_bounds: [{ key: id, value: range[1] }],
        }),
      },
    };
  };

  /** Sends a commit until its outcome is known. @returns whether the table has it */
  const send = async (
    request: Parameters<IcebergCatalog['commit']>[0],
    id: string,
    parent: string | null,
    signal: AbortSignal,
  ): Promise<'there' | 'refused' | 'overtaken'> => {
    for (let sends = 1; ; sends += 1) {
      const outcome = await catalog.commit(request, signal);
      if (outcome === 'committed') return 'there';
      const history = historyOf((await load(signal)) ?? noTable(name));
      if (history.some((snapshot) => snapshot['snapshot-id'] === id)) return 'there';
      // Only the first response to a request that nothing was repeated of says that it will never arrive.
      if (outcome === 'conflict') return sends === 1 ? 'refused' : 'overtaken';
      // The same request again changes nothing once the table has another newest snapshot.
      if ((history[0]?.['snapshot-id'] ?? null) !== parent) return 'overtaken';
      if (sends === maxSends)
        throw new DestinationError(
          'CatalogUnavailable',
          `The Iceberg catalog did not say whether it has a commit to the table ${name}.`,
          { transient: true },
        );
      await wait(sendPauseMs * 2 ** sends, undefined, { signal }).catch(() => {
        throw signal.reason;
      });
    }
  };

  const commit = async (change: IcebergChange, signal: AbortSignal): Promise<string | null> => {
    const { batchExportId, removed, columns } = change;
    const metadata = change.head?.metadata ?? (await loadOrCreate(change, signal));
    requireWritable(metadata, batchExportId);
    const version = metadata['last-sequence-number'] + 1;
    if (version !== change.version) return null;
    const [newest] = historyOf(metadata);
    const parent = newest?.['snapshot-id'] ?? null;
    // Below 2^53, for readers that round.
    const id = String(randomBytes(8).readBigUInt64BE() >> 11n);
    const knownSpec = specIdOf(metadata, specFields);
    const specId = knownSpec ?? Math.max(...metadata['partition-specs'].map((spec) => spec['spec-id'])) + 1;
    const schema = currentSchema(metadata);
    const isEmpty = metadata.snapshots.length === 0;
    const fields = withFields(isEmpty ? [] : schema.fields, withPartitions(store.partitionColumns, columns));
    const newSchema = fields && {
      ...{ type: 'struct', fields },
      'schema-id': Math.max(...metadata.schemas.map((known) => known['schema-id'])) + 1,
    };
    const written: string[] = [];
    const mark = randomUUID();
    const add = async (entries: readonly ManifestEntry[]): Promise<ManifestFile> => {
      const bytes = formatManifest({ schema: newSchema ?? schema, specId, partitions }, entries);
      const file = `${mark}-m${written.length}.avro`;
      written.push(`${metadataFolder}${file}`);
      const path = await put(file, bytes, signal);
      return describeManifest(
        path,
        bytes.length,
        { specId, partitions, snapshotId: BigInt(id), sequence: version },
        entries,
      );
    };
    const kept = change.head?.manifests ?? [];
    const { manifests, rewritten, gone } = await without(kept, removed, { id, specId }, signal);
    const all = [
      ...(change.added.length > 0 ? [await add(change.added.map(entryOf))] : []),
      ...(await oneByOne(rewritten, add)),
      ...(await merged(manifests, specId, add, signal)),
    ];
    const sizes = (files: readonly { readonly rows: number; readonly bytes: number }[]) => ({
      files: files.length,
      rows: files.reduce((sum, { rows }) => sum + rows, 0),
      bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    });
    const listFile = `snap-${id}-1-${mark}.avro`;
    written.push(`${metadataFolder}${listFile}`);
    const manifestList = await put(
      listFile,
      formatManifestList({ id, parent, sequence: version }, all),
      signal,
    );
    const isWhole = !change.head && newest !== undefined;
    const summary = {
      ...summaryOf(
        isWhole ? undefined : newest?.summary,
        sizes(change.added),
        sizes(
          gone.map(({ data_file }) => ({
            rows: data_file.record_count,
            bytes: data_file.file_size_in_bytes,
          })),
        ),
      ),
      ...(isWhole && { operation: 'overwrite' }),
      ...change.summary,
    };
    const outcome = await send(
      {
        requirements: [
          { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
          {
            ...{ type: 'assert-ref-snapshot-id', ref: 'main' },
            'snapshot-id': parent === null ? null : BigInt(parent),
          },
          ...(newSchema
            ? [
                {
                  type: 'assert-current-schema-id',
                  'current-schema-id': metadata['current-schema-id'],
                },
                {
                  type: 'assert-last-assigned-field-id',
                  'last-assigned-field-id': metadata['last-column-id'],
                },
              ]
            : []),
          ...(knownSpec === undefined
            ? [
                {
                  type: 'assert-last-assigned-partition-id',
                  'last-assigned-partition-id': metadata['last-partition-id'],
                },
              ]
            : []),
        ],
        updates: [
          ...(newSchema
            ? [
                {
                  ...{ action: 'add-schema', schema: newSchema },
                  'last-column-id': Math.max(
                    metadata['last-column-id'],
                    ...newSchema.fields.map((field) => field.id),
                  ),
                },
                { action: 'set-current-schema', 'schema-id': -1 },
              ]
            : []),
          ...(knownSpec === undefined
            ? [
                { action: 'add-spec', spec: { 'spec-id': specId, fields: specFields } },
                { action: 'set-default-spec', 'spec-id': -1 },
              ]
            : []),
          {
            action: 'add-snapshot',
            snapshot: {
              'snapshot-id': BigInt(id),
              ...(parent !== null && { 'parent-snapshot-id': BigInt(parent) }),
              'sequence-number': version,
              'timestamp-ms': Math.max(change.now, newest?.['timestamp-ms'] ?? 0),
              'manifest-list': manifestList,
              'schema-id': newSchema?.['schema-id'] ?? schema['schema-id'],
              summary,
            },
          },
          {
            ...{ action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch' },
            'snapshot-id': BigInt(id),
          },
        ],
      },
      id,
      parent,
      signal,
    );
    if (outcome === 'there') return id;
    if (outcome === 'refused')
      for (const object of written) await store.delete(object, signal).catch(() => undefined);
    return null;
  };

  /** The manifests that stay, and the entries of those that are written again because files leave them. */
  const without = async (
    manifests: readonly ManifestFile[],
    removed: ReadonlySet<string>,
    { id, specId }: { readonly id: string; readonly specId: number },
    signal: AbortSignal,
  ): Promise<{
    readonly manifests: ManifestFile[];
    readonly rewritten: ManifestEntry[][];
    readonly gone: ManifestEntry[];
  }> => {
    const { deleted } = entryStatus;
    const live = manifests.filter(
      ({ content, added_files_count, existing_files_count }) =>
        content !== 0 || (added_files_count ?? 1) + (existing_files_count ?? 1) > 0,
    );
    if (removed.size === 0) return { manifests: live, rewritten: [], gone: [] };
    const gone: ManifestEntry[] = [];
    const rewritten: ManifestEntry[][] = [];
    const touched = new Set<ManifestFile>();
    for (const [manifest, entries] of await readManifests(live, metadataBudget(), signal)) {
      const isGone = ({ status, data_file }: ManifestEntry): boolean =>
        status !== deleted && removed.has(data_file.file_path);
      if (!entries.some(isGone)) continue;
      requireSpec(manifest, specId);
      touched.add(manifest);
      gone.push(...entries.filter(isGone));
      rewritten.push(
        entries
          .filter(({ status }) => status !== deleted)
          .map((entry) =>
            isGone(entry)
              ? { ...entry, status: deleted, snapshot_id: BigInt(id) }
              : { ...entry, status: entryStatus.existing },
          ),
      );
    }
    return { manifests: live.filter((manifest) => !touched.has(manifest)), rewritten, gone };
  };

  /** Joins small manifests once there are many, so that readers open few. */
  const merged = async (
    manifests: readonly ManifestFile[],
    specId: number,
    add: (entries: readonly ManifestEntry[]) => Promise<ManifestFile>,
    signal: AbortSignal,
  ): Promise<readonly ManifestFile[]> => {
    const small = manifests.filter(
      ({ content, manifest_length, partition_spec_id }) =>
        content === 0 && manifest_length < maxMergedBytes && partition_spec_id === specId,
    );
    if (small.length < maxManifests) return manifests;
    const entries = (await readManifests(small, metadataBudget(), signal)).flatMap(([, found]) =>
      found
        .filter(({ status }) => status !== entryStatus.deleted)
        .map((entry) => ({ ...entry, status: entryStatus.existing })),
    );
    return [await add(entries), ...manifests.filter((manifest) => !small.includes(manifest))];
  };

  const requireSpec = ({ partition_spec_id }: ManifestFile, specId: number): void => {
    if (partition_spec_id !== specId)
      throw tableError(
        'TableProtocol',
        `The table ${name} has files of other partitions, which exportd did not write.`,
      );
  };

  /** Removes snapshots that readers had their time for, with the objects that only they need. */
  const expire = async (
    metadata: IcebergMetadata,
    signal: AbortSignal,
    fileRetentionMs = store.fileRetentionMs,
  ): Promise<IcebergMetadata> => {
    const history = historyOf(metadata);
    // The clock of another worker may be ahead.
    const before = fileRetentionMs === 0 ? Infinity : Date.now() - fileRetentionMs;
    const byId = new Map(metadata.snapshots.map((snapshot) => [snapshot['snapshot-id'], snapshot]));
    const elsewhere = new Set<string>();
    for (const [ref, { 'snapshot-id': id }] of Object.entries(metadata.refs))
      for (
        let at = ref === 'main' ? undefined : byId.get(id);
        at && !elsewhere.has(at['snapshot-id']);
        at = byId.get(at['parent-snapshot-id'] ?? '')
      )
        elsewhere.add(at['snapshot-id']);
    // What nothing leads to, as after a tag was dropped or the table went back to an older version, is usually left to others.
    const lost =
      fileRetentionMs === 0 ? metadata.snapshots.filter((snapshot) => !history.includes(snapshot)) : [];
    const expired = [
      ...lost,
      ...history.filter(
        (_, at) =>
          // Since a newer one replaced it, whenever it was written.
          at > 0 && (history[at - 1]?.['timestamp-ms'] ?? Infinity) < before,
      ),
    ].filter((snapshot) => !elsewhere.has(snapshot['snapshot-id']));
    const [newest] = history;
    if (!newest || expired.length === 0) return metadata;
    const outcome = await catalog.commit(
      {
        requirements: [
          { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
          {
            ...{ type: 'assert-ref-snapshot-id', ref: 'main' },
            'snapshot-id': BigInt(newest['snapshot-id']),
          },
        ],
        updates: [
          {
            action: 'remove-snapshots',
            'snapshot-ids': expired.map((snapshot) => BigInt(snapshot['snapshot-id'])),
          },
        ],
      },
      signal,
    );
    if (outcome !== 'committed') return metadata;
    const isExpired = new Set(expired);
    const left = metadata.snapshots.filter((snapshot) => !isExpired.has(snapshot));
    const newestOfHistory = history.slice(0, left.length);
    const isLinear = left.every((snapshot) => newestOfHistory.includes(snapshot));
    // Each list has manifests of the one before it and new ones, unless something else has gone back or a tag keeps an older one.
    const readers = isLinear ? left.filter((snapshot) => snapshot === history[left.length - 1]) : left;
    const budget = metadataBudget();
    const needed = new Set(
      (await inParallel(readers, (snapshot) => readList(snapshot, budget, signal)))
        .flat()
        .map(({ manifest_path }) => manifest_path),
    );
    const lists = await inParallel(expired, async (snapshot) => ({
      path: snapshot['manifest-list'] ?? '',
      manifests: await readList(snapshot, budget, signal).catch((error: unknown) => {
        // It is gone already.
        if (error instanceof DestinationError && !error.transient) return [];
        throw error;
      }),
    }));
    const obsolete = new Set(
      lists.flatMap(({ path, manifests }) => [path, ...manifests.map(({ manifest_path }) => manifest_path)]),
    );
    await inParallel(
      [...obsolete].map(keyOf).filter((key) => key.startsWith(`${store.root}/${metadataFolder}`)),
      async (key) => {
        if (!needed.has(`${bucket}${key}`)) await store.delete(key.slice(store.root.length + 1), signal);
      },
    );
    return { ...metadata, snapshots: left };
  };

  return {
    location: store.location,
    name,
    root: store.root,
    firstVersion: 1,
    // The catalog decides which of two commits passes, and names of objects are never used twice.
    requireConditionalWrites: () => Promise.resolve(),
    head: readHead,
    neededKeys: async (signal) => {
      const found = await load(signal);
      if (!found) return new Set();
      const { snapshots } = await expire(found, signal);
      const budget = metadataBudget();
      const lists = await inParallel(snapshots, (snapshot) => readList(snapshot, budget, signal));
      const manifests = new Map(lists.flat().map((manifest) => [manifest.manifest_path, manifest]));
      const entries = await readManifests([...manifests.values()], budget, signal);
      return new Set([...liveIn(entries).keys()].map(keyOf));
    },
    readCommit: async (version, signal) => {
      const metadata = await load(signal);
      const snapshot = metadata && historyOf(metadata).find((one) => one['sequence-number'] === version);
      if (!snapshot) return null;
      const { interval: _, ...found } = commitOf(snapshot);
      return { version, etag: snapshot['snapshot-id'], isPlain: false, ...found };
    },
    change: (head, publication) => {
      const { batch_export_id, run_id, generation, interval, fingerprint, columns, hasKeys, now } =
        publication;
      if (head) requireWritable(head.metadata, batch_export_id);
      const live = head?.entries ? [...head.live()] : [];
      if (head && !head.entries && (publication.replaced || publication.earlier.length > 0))
        throw new TypeError('What replaces files needs the files of the table.');
      const { adds, removes } = changedFiles(name, live, publication);
      if (adds.length === 0 && removes.length === 0) return null;
      if (adds.length > 0) withFields(fieldsOf(head), withPartitions(store.partitionColumns, columns));
      const paths = new Map([...(head?.entries?.keys() ?? [])].map((path) => [keyOf(path), path]));
      return {
        ...{ head, now, version: head?.nextVersion ?? 1, batchExportId: batch_export_id },
        columns: adds.length > 0 || !head ? columns : [],
        adds: adds.length,
        removes: removes.length,
        added: adds.map((file) => ({ ...file, hasKeys })),
        removed: new Set(removes.flatMap((key) => paths.get(key) ?? [])),
        summary: {
          [marks.export]: batch_export_id,
          [marks.run]: run_id,
          [marks.generation]: String(generation),
          [marks.start]: interval.start,
          [marks.end]: interval.end,
          [marks.fingerprint]: JSON.stringify(fingerprint),
        },
      };
    },
    addition: () => null,
    commit,
    isMaintained: (version) => version > 0 && version % store.checkpointInterval === 0,
    maintain: async (signal) => {
      const metadata = await load(signal);
      return metadata && headOf(await expire(metadata, signal), 'definition', signal);
    },
    forgetOlder: async (signal) => {
      const metadata = await load(signal);
      if (metadata) await expire(metadata, signal, 0);
    },
    describe: (head) => describe(head, location),
    history: async ({ before, limit }, signal) => {
      const metadata = await load(signal);
      return (metadata ? historyOf(metadata) : [])
        .filter((snapshot) => before === null || snapshot['sequence-number'] < before)
        .slice(0, limit)
        .map(versionOf);
    },
    newestVersion: async (signal) => (await load(signal))?.['last-sequence-number'] ?? 0,
    repair: (head, version, { batch_export_id, repair_id, columns, adds, removes, now }) => {
      if (head) requireWritable(head.metadata, batch_export_id);
      withFields(fieldsOf(head), withPartitions(store.partitionColumns, columns));
      const paths = new Map([...(head?.entries?.keys() ?? [])].map((path) => [keyOf(path), path]));
      return {
        ...{ head, version, now, columns, batchExportId: batch_export_id },
        adds: adds.length,
        removes: removes.length,
        added: adds,
        removed: new Set(removes.flatMap((key) => paths.get(key) ?? [])),
        summary: { [marks.export]: batch_export_id, [marks.repair]: repair_id },
      };
    },
    // A snapshot has its own list of manifests, whatever those before it have.
    finishRepair: () => Promise.resolve(),
  };
}

const noTable = (name: string): never => {
  throw tableError('TableChanged', `The catalog no longer has the table ${name}.`);
};

/** The fields that new columns join; none while the table has no files. */
const fieldsOf = (head: IcebergHead | null) =>
  head && head.metadata.snapshots.length > 0 ? currentSchema(head.metadata).fields : [];

const required = <Value>(value: Value | null): Value => {
  if (value === null) throw new TypeError('The files of the table were not read.');
  return value;
};

/** The files that manifests leave in the table, by path. */
const liveIn = (
  manifests: readonly (readonly [ManifestFile, readonly ManifestEntry[]])[],
): Map<string, ManifestEntry> =>
  new Map(
    manifests.flatMap(([, entries]) =>
      entries.flatMap((entry) =>
        entry.status === entryStatus.deleted ? [] : [[entry.data_file.file_path, entry] as const],
      ),
    ),
  );

async function inParallel<Input, Output>(
  inputs: readonly Input[],
  work: (input: Input) => Promise<Output>,
): Promise<Output[]> {
  const outputs: Output[] = [];
  for (let at = 0; at < inputs.length; at += maxRequests)
    outputs.push(...(await Promise.all(inputs.slice(at, at + maxRequests).map(work))));
  return outputs;
}

async function oneByOne<Input, Output>(
  inputs: readonly Input[],
  work: (input: Input) => Promise<Output>,
): Promise<Output[]> {
  const outputs: Output[] = [];
  for (const input of inputs) outputs.push(await work(input));
  return outputs;
}

/** What the keys of exportd's files say of their interval; null for a file of another writer. */
function intervalIn(key: string): DataInterval | null {
  const [, ...bounds] = /(?:^|\/)(\d{8}T\d{6}Z)-(\d{8}T\d{6}Z)[^/]*\.parquet$/.exec(key) ?? [];
  const [start, end] = bounds.map((time) =>
    time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6.000Z'),
  );
  return start === undefined || end === undefined ? null : { start, end };
}

const insertedAt = '_inserted_at';
const usualTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?Z$/;

/** The range of the insertion times of a file's rows, by which they are sorted; null if a reader could not use it. */
function rangeOf(first: CompletedFile['first'], last: CompletedFile['last']): [Buffer, Buffer] | null {
  const [lower, upper] = [first, last].map((key) => (key ? microsOf(key.inserted_at) : null));
  return lower && upper ? [lower, upper] : null;
}

function microsOf(time: string): Buffer | null {
  const [, seconds, fraction = ''] = usualTime.exec(time) ?? [];
  if (seconds === undefined) return null;
  const micros = BigInt(Date.parse(`${seconds}Z`)) * 1_000n + BigInt(fraction.padEnd(6, '0'));
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(micros);
  return bytes;
}

const shownText = (text: string): string => safeText(text).slice(0, 200);

function describe({ metadata, version, entries }: IcebergHead, location: string): TableDescription {
  const files = [...required(entries).values()];
  return {
    ...{ format: 'iceberg', location, version, checkpoint: null, files: files.length },
    rows: files.reduce((sum, { data_file }) => sum + data_file.record_count, 0),
    bytes: files.reduce((sum, { data_file }) => sum + data_file.file_size_in_bytes, 0),
    columns: currentSchema(metadata)
      .fields.slice(0, bounds.queryColumns.max)
      .map(({ name, type }) => ({
        name: shownText(name),
        type: typeof type === 'string' ? shownText(type) : 'structure',
      })),
    partition_columns: (
      metadata['partition-specs'].find((spec) => spec['spec-id'] === metadata['default-spec-id'])?.fields ??
      []
    )
      .map((field) => shownText(field.name))
      .slice(0, bounds.queryColumns.max),
    protocol: { reader: metadata['format-version'], writer: metadata['format-version'] },
  };
}

function versionOf(snapshot: IcebergSnapshot): TableVersion {
  const { publication, repair_id, interval, adds, removes } = commitOf(snapshot);
  const known = {
    version: snapshot['sequence-number'],
    committed_at: new Date(snapshot['timestamp-ms']).toISOString(),
    ...{ adds, removes },
  };
  const nothing = { description: null, run_id: null, generation: null, interval: null };
  if (publication) return { ...known, ...nothing, writer: 'run', ...publication, interval };
  if (repair_id !== null) return { ...known, ...nothing, writer: 'repair' };
  const { 'engine-name': engine, operation } = snapshot.summary;
  const description = [engine, operation].filter((part) => part !== undefined).join(', ');
  return {
    ...{ ...known, ...nothing, writer: 'other' },
    description: description === '' ? null : shownText(description),
  };
}
