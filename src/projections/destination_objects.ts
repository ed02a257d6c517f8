import type { RecordedFile } from '../domain/exported_files.ts';
import type { AdoptedManifest } from '../domain/adopted_manifest.ts';
import { earlierGenerationsOf, type ExistingRun, type RunSpec } from '../domain/run_state.ts';
import type { FoldedEvent, StoredStreamEvent } from '../journal/journal.ts';
import { existingRun, type Projection } from './projection.ts';
import type { CachedTable, RowCache, WantedRows } from './row_cache.ts';
import type { RunEventData } from '../domain/run_events.ts';

interface ObjectRow {
  readonly position: number;
  readonly ordinal: number;
  readonly batch_export_id: string;
  readonly run_id: string;
  readonly config_version: number;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly generation: number;
  readonly object_type: 'upload' | 'file' | 'manifest';
  readonly range: number | null;
  readonly key: string;
  readonly upload_id: string | null;
  readonly upload_token: string | null;
  readonly file: Omit<RecordedFile, 'key'> | null;
  readonly publish_claimed: boolean;
  readonly obsolete_at: string | null;
  readonly failing_since: string | null;
  readonly held_version: string | null;
  readonly held_until: string | null;
}

const interval = ['batch_export_id', 'data_interval_start', 'data_interval_end'];
const isCurrent = ({ obsolete_at }: ObjectRow): boolean => obsolete_at === null;
/** No manifest can refer to it, and it is needed. */
const isUnpublished = (object: ObjectRow): boolean => isCurrent(object) && !object.publish_claimed;

/** A run may have thousands of files, so that most events want few of its rows. */
const table: CachedTable<ObjectRow> = {
  name: 'exportd.destination_objects',
  key: ['position', 'ordinal'],
  lookups: {
    run: { columns: ['run_id'] },
    currentOfRun: {
      columns: ['run_id'],
      where: { sql: 'stored.obsolete_at is null', holds: isCurrent },
    },
    uploadsOfRun: {
      columns: ['run_id'],
      where: {
        sql: `stored.object_type = 'upload' and stored.obsolete_at is null`,
        holds: (object) => object.object_type === 'upload' && isCurrent(object),
      },
    },
    keyOfRun: { columns: ['run_id'], also: 'key' },
    /** With manifests that another one has replaced. */
    interval: {
      columns: interval,
      where: {
        sql: `(stored.obsolete_at is null or stored.object_type = 'manifest')`,
        holds: (object) => isCurrent(object) || object.object_type === 'manifest',
      },
    },
    keyOfInterval: { columns: interval, also: 'key' },
    unpublishedOfExport: {
      columns: ['batch_export_id'],
      where: { sql: 'stored.obsolete_at is null and not stored.publish_claimed', holds: isUnpublished },
      isSelective: true,
    },
  },
};

interface FailureRow {
  readonly batch_export_id: string;
  readonly config_version: number;
  readonly failing_since: string;
}

const failuresTable: CachedTable<FailureRow> = {
  name: 'exportd.location_failures',
  key: ['batch_export_id', 'config_version'],
  lookups: { export: { columns: ['batch_export_id'] } },
};

/**
 * One row per object of a destination that is known to the journal and not deleted: open uploads, files and manifests.
 * An obsolete object never becomes current again: no manifest will refer to it and no run will resume it.
 */
export const destinationObjectsProjection: Projection = {
  name: 'destination_objects',
  version: 18,
  reads: ['stream_states', 'runs'],
  owns: ['exportd.destination_objects', 'exportd.location_failures'],
  tables: `
    create table exportd.destination_objects (
      -- Journal position of the event that created the object.
      position bigint not null,
      -- 0 for the objects of the run itself; distinguishes those of a manifest that it adopted or may find.
      ordinal integer not null default 0,
      batch_export_id uuid not null,
      -- The run that owns it. A run that resumes from another inherits that run's objects.
      run_id uuid not null,
      config_version integer not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      generation integer not null,
      object_type text not null check (object_type in ('upload', 'file', 'manifest')),
      -- The range of an upload or file.
      range integer,
      key text not null,
      upload_id text,
      -- Distinguishes the object completed from the upload from any other.
      upload_token text,
      -- The facts of a completed file, without its key; null for every other object. Its fingerprint is null if the totals of the
      -- run tell it.
      file jsonb,
      -- Whether a manifest may refer to it, because its run claimed publishing.
      publish_claimed boolean not null default false,
      obsolete_at timestamptz,
      -- When deleting it first failed, for a reason specific to it.
      failing_since timestamptz,
      -- The version that object lock keeps of it, and until when.
      held_version text,
      held_until timestamptz,
      primary key (position, ordinal)
    );
    -- Locations where every deletion has failed since.
    create table exportd.location_failures (
      batch_export_id uuid not null,
      config_version integer not null,
      failing_since timestamptz not null,
      primary key (batch_export_id, config_version)
    );
    create index destination_objects_interval on exportd.destination_objects
      (batch_export_id, data_interval_start, data_interval_end);
    create index destination_objects_run on exportd.destination_objects (run_id);
    -- A run may have thousands of files, and few uploads.
    create index destination_objects_uploads on exportd.destination_objects (run_id) where object_type = 'upload';
    create index destination_objects_obsolete on exportd.destination_objects (obsolete_at)
      where obsolete_at is not null;
    create index destination_objects_held on exportd.destination_objects (batch_export_id)
      where held_until is not null`,
  cached: [table, failuresTable],
  wants: ({ stream_type, stored, state }) => {
    if (stream_type === 'run') return wantedBy(stored, state);
    return stored.type === 'BatchExportDeleted'
      ? [{ table, lookup: 'unpublishedOfExport', values: [stored.stream_id] }]
      : [];
  },
  fold: (rows, { stream_type, stored, state }) => {
    if (stream_type === 'run') foldRun(rows, stored, state);
    // Objects to which a manifest of a deleted export refers stay in the bucket.
    if (stored.type === 'BatchExportDeleted')
      for (const row of rows.find(table, 'unpublishedOfExport', stored.stream_id))
        rows.change(table, row, { obsolete_at: stored.recorded_at });
    // A later run of the interval reads from the manifest which files it replaces.
    if (stored.type === 'HistoryCollapsed') rows.deleteAll(table, 'run', stored.data.run_ids);
  },
};

const keyOf = ({ batch_export_id, data_interval_start, data_interval_end }: RunSpec) => [
  batch_export_id,
  data_interval_start,
  data_interval_end,
];

const adoptedObjects = ({ files, rejected_file, kept, earlier, generation }: AdoptedManifest) => [
  ...[...files, ...(rejected_file ? [rejected_file] : [])].map(({ key }) => ({ key, generation })),
  ...kept,
  ...earlier,
];

function wantedBy(
  stored: StoredStreamEvent<'run'>,
  state: FoldedEvent<'run'>['state'],
): readonly WantedRows[] {
  const { stream_id: id } = stored;
  const ofRun = (lookup: string, ...more: readonly unknown[]): WantedRows => ({
    table,
    lookup,
    values: [id, ...more],
  });
  const ofInterval = (lookup: string, ...more: readonly unknown[]): WantedRows => ({
    table,
    lookup,
    values: [...keyOf(existingRun(state).spec), ...more],
  });
  switch (stored.type) {
    case 'RunCreated':
      return [{ ...ofRun('run'), isNew: true }, ofInterval('interval')];
    case 'RunExportStarted':
      return stored.data.generation === undefined ? [] : [ofRun('currentOfRun')];
    case 'RunUploadCreated':
    case 'RunFileCompleted':
      return [ofRun('uploadsOfRun')];
    case 'RunKeyTaken':
      return stored.data.range === null ? [ofRun('keyOfRun', stored.data.key)] : [];
    case 'RunManifestAdopted':
      return [
        ofRun('currentOfRun'),
        ...adoptedObjects(stored.data).map(({ key }) => ofInterval('keyOfInterval', key)),
      ];
    case 'RunCompleted':
      return [ofInterval('interval')];
    case 'RunGenerationReserved':
    case 'RunPublishStarted':
    case 'RunPublishWithdrawn':
    case 'RunCancelled':
    case 'RunUnchanged':
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunRetryCancelled':
      return [ofRun('currentOfRun')];
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      return stored.data.retry_delay_seconds === null ? [ofRun('currentOfRun')] : [];
    case 'RunObjectDeleted':
    case 'RunObjectDeletionFailed': {
      const { batch_export_id } = existingRun(state).spec;
      return [
        ofRun('keyOfRun', stored.data.key),
        { table: failuresTable, lookup: 'export', values: [batch_export_id] },
      ];
    }
    default:
      return [];
  }
}

function foldRun(rows: RowCache, stored: StoredStreamEvent<'run'>, state: FoldedEvent<'run'>['state']): void {
  const { stream_id: id, recorded_at: at } = stored;
  /** Changes the run's objects that are not obsolete, and that `changesOf` returns changes of. */
  const change = (
    changesOf: (object: ObjectRow) => Partial<ObjectRow> | undefined,
    lookup = 'currentOfRun',
  ) => changeRows(rows, rows.find(table, lookup, id), changesOf);
  const markObsolete = () => change((object) => (isUnpublished(object) ? { obsolete_at: at } : undefined));
  switch (stored.type) {
    case 'RunCreated':
      inheritObjects(rows, stored, stored.data);
      return;
    case 'RunExportStarted':
    case 'RunGenerationReserved': {
      const reserved = stored.data.generation;
      if (reserved === undefined) return;
      // Files that the run inherited with a claim belong to the manifest of a failed run, which may be stored.
      change(({ generation, publish_claimed, ordinal }) => {
        if (generation >= reserved) return undefined;
        return publish_claimed ? { ordinal: Math.max(ordinal, 1) } : { obsolete_at: at };
      });
      return;
    }
    case 'RunUploadCreated': {
      // A file that is written in one request is an upload without id until it is complete.
      const { generation, range, key, upload_id, upload_token } = stored.data;
      change(
        (object) =>
          object.generation === generation && object.range === range && !object.publish_claimed
            ? { obsolete_at: at }
            : undefined,
        'uploadsOfRun',
      );
      const upload = { object_type: 'upload', generation, range, key, upload_id, upload_token } as const;
      rows.set(table, newObject(stored, existingRun(state), upload));
      return;
    }
    case 'RunFileCompleted': {
      const { generation, file } = stored.data;
      const { key, ...facts } = file;
      change(
        (object) =>
          object.generation === generation && object.key === key
            ? { object_type: 'file', upload_id: null, file: facts }
            : undefined,
        'uploadsOfRun',
      );
      return;
    }
    case 'RunRejectedFilePlanned': {
      const { generation, file } = stored.data;
      const object = { object_type: 'file', generation, key: file.key } as const;
      rows.set(table, newObject(stored, existingRun(state), object));
      return;
    }
    case 'RunKeyTaken':
      // Without a token, the file of rejected rows could not be told from the other object, which must not be deleted.
      if (stored.data.range !== null) return;
      for (const row of rows.find(table, 'keyOfRun', id, stored.data.key))
        if (
          row.generation === stored.data.generation &&
          row.object_type === 'file' &&
          row.upload_token === null
        )
          rows.delete(table, row);
      return;
    case 'RunPublishStarted':
    case 'RunPublishWithdrawn':
      change(({ generation, object_type }) =>
        generation === stored.data.generation && object_type === 'file'
          ? { publish_claimed: stored.type === 'RunPublishStarted' }
          : undefined,
      );
      return;
    case 'RunManifestAdopted':
      adoptObjects(rows, stored, existingRun(state), stored.data);
      return;
    case 'RunCompleted':
      publishObjects(rows, stored, existingRun(state), stored.data.manifest_key);
      return;
    case 'RunCancelled':
      // A run that was publishing is cancelled with its export, or once its bucket has no manifest of it. Whether a manifest
      // names its files is checked when they are deleted.
      change(({ ordinal, object_type, publish_claimed }) =>
        ordinal === 0 && object_type === 'file' && publish_claimed ? { obsolete_at: at } : undefined,
      );
      markObsolete();
      return;
    case 'RunUnchanged':
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunRetryCancelled':
      markObsolete();
      return;
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      // Otherwise the retry resumes them, or makes them obsolete when it starts.
      if (stored.data.retry_delay_seconds === null) markObsolete();
      return;
    case 'RunObjectDeletionFailed':
      recordDeletionFailure(rows, stored, stored.data);
      return;
    case 'RunObjectDeleted':
      deleteOrHold(rows, stored, stored.data);
      return;
    case 'RunCounted':
    case 'RunReplacementChecked':
    case 'RunPublishResumed':
    case 'RunTargetPlanned':
    case 'RunTargetCommitted':
    case 'RunAttemptStarted':
    case 'RunAttemptFailed':
    case 'RunUploadResumed':
    case 'RunPartPlanned':
    case 'RunRangeFinished':
    case 'RunExportFinished':
    case 'RunContinuedAsNew':
    case 'RunCancelRequested':
    case 'RunBarrierAdvanced':
    case 'RunSettled':
    case 'IntervalCompared':
      return;
  }
}

/** Changes those of some rows that `changesOf` returns changes of, and that are not obsolete. */
function changeRows(
  rows: RowCache,
  objects: readonly ObjectRow[],
  changesOf: (object: ObjectRow) => Partial<ObjectRow> | undefined,
): void {
  for (const object of objects) {
    const changes = isCurrent(object) ? changesOf(object) : undefined;
    if (changes) rows.change(table, object, changes);
  }
}

/** An object as described by the event that creates it. */
type NewObject = Pick<ObjectRow, 'object_type' | 'generation' | 'key'> & Partial<ObjectRow>;

const newObject = (
  { stream_id, global_position }: StoredStreamEvent<'run'>,
  { spec }: ExistingRun,
  described: NewObject,
): ObjectRow => ({
  position: global_position,
  ordinal: 0,
  batch_export_id: spec.batch_export_id,
  run_id: stream_id,
  config_version: spec.config_version,
  data_interval_start: spec.data_interval_start,
  data_interval_end: spec.data_interval_end,
  range: null,
  upload_id: null,
  upload_token: null,
  file: null,
  publish_claimed: false,
  obsolete_at: null,
  failing_since: null,
  held_version: null,
  held_until: null,
  ...described,
});

/**
 * Assigns the inherited objects to a new run. All other unpublished objects of the interval become obsolete; published
 * ones stay until the next manifest.
 */
function inheritObjects(
  rows: RowCache,
  { stream_id, recorded_at }: StoredStreamEvent<'run'>,
  { inherited, ...spec }: RunEventData<'RunCreated'>,
): void {
  const { ranges = [], rejected_file = null, generation } = inherited?.progress ?? {};
  const keys = new Set([...ranges.map(({ upload }) => upload), rejected_file].map((object) => object?.key));
  changeRows(rows, rows.find(table, 'interval', ...keyOf(spec)), (object) => {
    const isInherited =
      object.run_id === inherited?.run_id &&
      ((object.generation === generation && object.file !== null) || keys.has(object.key));
    if (isInherited) return { run_id: stream_id };
    return object.publish_claimed ? undefined : { obsolete_at: recorded_at };
  });
}

/**
 * Adds the files of a manifest that the run found in the bucket: they are published, and no run of the journal may own
 * them. An upload with the key of one is a file that the run planned before it found the key taken. The run's own objects,
 * which have no ordinal, move to the generation above the manifest's; no manifest refers to them yet.
 */
function adoptObjects(
  rows: RowCache,
  stored: StoredStreamEvent<'run'>,
  run: ExistingRun,
  adopted: AdoptedManifest,
): void {
  changeRows(rows, rows.find(table, 'currentOfRun', stored.stream_id), ({ ordinal }) =>
    ordinal === 0 ? { generation: adopted.raised_to, publish_claimed: false } : undefined,
  );
  const objects = adoptedObjects(adopted).map(({ key, generation }, index) => ({
    isKnown: rows
      .find(table, 'keyOfInterval', ...keyOf(run.spec), key)
      .some(({ object_type }) => object_type !== 'upload'),
    described: { object_type: 'file', ordinal: index + 1, generation, key, publish_claimed: true } as const,
  }));
  for (const { isKnown, described } of objects)
    if (!isKnown) rows.set(table, newObject(stored, run, described));
}

/**
 * Publishes the run's files and manifest. All other objects of the interval become obsolete, except published ones that
 * the run leaves: files that its manifest names, and generations in another bucket.
 */
function publishObjects(
  rows: RowCache,
  stored: StoredStreamEvent<'run'>,
  run: ExistingRun,
  manifestKey: string,
): void {
  const { spec, generation, replacement } = run;
  const { kept, earlier, elsewhere } = earlierGenerationsOf(run);
  const ofInterval = () => rows.find(table, 'interval', ...keyOf(spec));
  // The files of a manifest to which the run adds late rows become its own: its manifest names them too.
  const base = replacement?.base && replacement.replaced;
  if (base)
    changeRows(rows, ofInterval(), ({ run_id, generation: former, object_type, file }) =>
      run_id === base.run_id && former === base.generation && object_type === 'file'
        ? { run_id: stored.stream_id, generation, range: 0, file: file && { generation: former, ...file } }
        : undefined,
    );
  // The manifest overwrites the object with the same key, so the new row replaces the old one.
  for (const object of ofInterval())
    if (
      object.object_type === 'manifest' &&
      object.key === manifestKey &&
      object.config_version === spec.config_version
    )
      rows.delete(table, object);
  const staying = new Set([...kept, ...earlier].map(({ key }) => key));
  changeRows(rows, ofInterval(), (object) => {
    const { object_type, key, run_id, publish_claimed } = object;
    const stays = (object_type === 'file' && staying.has(key)) || elsewhere.includes(object.generation);
    if (publish_claimed && stays) return undefined;
    const isPublished =
      run_id === stored.stream_id && object.generation === generation && object_type === 'file';
    return isPublished ? { publish_claimed: true } : { obsolete_at: stored.recorded_at };
  });
  rows.set(
    table,
    newObject(stored, run, { object_type: 'manifest', generation, key: manifestKey, publish_claimed: true }),
  );
}

/** The obsolete objects that an event of a deletion is about. */
const obsoleteObjects = (
  rows: RowCache,
  { stream_id }: StoredStreamEvent<'run'>,
  { key, upload_id, upload_token }: RunEventData<'RunObjectDeleted' | 'RunObjectDeletionFailed'>,
): readonly ObjectRow[] =>
  rows
    .find(table, 'keyOfRun', stream_id, key)
    .filter(
      (object) =>
        object.upload_id === upload_id && object.upload_token === upload_token && !isCurrent(object),
    );

const failuresAt = (rows: RowCache, { batch_export_id, config_version }: ObjectRow): readonly FailureRow[] =>
  rows
    .find(failuresTable, 'export', batch_export_id)
    .filter((failure) => failure.config_version === config_version);

/** Records since when deleting an object, or anything at its location, has failed. */
function recordDeletionFailure(
  rows: RowCache,
  stored: StoredStreamEvent<'run'>,
  data: RunEventData<'RunObjectDeletionFailed'>,
): void {
  const failing_since = stored.recorded_at;
  for (const object of obsoleteObjects(rows, stored, data)) {
    const { batch_export_id, config_version } = object;
    if (!data.location_wide)
      rows.change(table, object, { failing_since: object.failing_since ?? failing_since });
    else if (failuresAt(rows, object).length === 0)
      rows.set(failuresTable, { batch_export_id, config_version, failing_since });
  }
}

/** Deletes the row of a deleted object, and the failure of its location. One that object lock keeps stays, to be deleted after that. */
function deleteOrHold(
  rows: RowCache,
  stored: StoredStreamEvent<'run'>,
  data: RunEventData<'RunObjectDeleted'>,
): void {
  const { held, deleted } = data;
  for (const object of obsoleteObjects(rows, stored, data)) {
    if (deleted) for (const failure of failuresAt(rows, object)) rows.delete(failuresTable, failure);
    if (held) rows.change(table, object, { held_version: held.version_id, held_until: held.until });
    else rows.delete(table, object);
  }
}
