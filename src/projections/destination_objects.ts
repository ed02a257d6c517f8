import type { AdoptedManifest, ReplacementCheck } from '../domain/exported_files.ts';
import type { RunEvent, RunEventData } from '../domain/run.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import { type FoldedEvent, type Projection } from './projection.ts';
import { digestOf } from './batch_exports.ts';
import { type CachedTable, type Row, type RowCache, type WantedRows } from './row_cache.ts';
import { readRun } from './stream_states.ts';

/** An object as described by the event that creates it. */
interface NewObject {
  readonly object_type: 'upload' | 'file';
  readonly generation: number;
  readonly range: number | null;
  readonly key: string;
  readonly upload_id: string | null;
  readonly upload_token: string | null;
}

/** Inserts an object of a run. */
async function insertObject(connection: Connection, stored: StoredEvent, named: NewObject): Promise<void> {
  await connection.query(
    `insert into exportd.destination_objects (position, batch_export_id, run_id, config_version, data_interval_start,
       data_interval_end, generation, object_type, range, key, upload_id, upload_token)
     select $2, batch_export_id, id, config_version, data_interval_start, data_interval_end, $3, $4, $5, $6, $7, $8
     from exportd.batch_export_runs where id = $1`,
    [
      stored.stream_id,
      stored.global_position,
      named.generation,
      named.object_type,
      named.range,
      named.key,
      named.upload_id,
      named.upload_token,
    ],
  );
}

/**
 * Assigns the inherited objects to a new run. All other unpublished objects of the interval become obsolete; published
 * ones stay until the next manifest.
 */
async function inheritObjects(
  connection: Connection,
  stored: StoredEvent,
  { inherited, ...spec }: RunEventData<'RunCreated'>,
): Promise<void> {
  const { ranges = [], rejected_file = null } = inherited?.progress ?? {};
  const keys = [...ranges.map(({ upload }) => upload), rejected_file].flatMap((object) => object?.key ?? []);
  const isInherited = 'run_id = $6 and (generation = $8 and file is not null or key = any($7))';
  await connection.query(
    `update exportd.destination_objects set
       run_id = case when ${isInherited} then $1 else run_id end,
       obsolete_at = case when ${isInherited} then null else $2::timestamptz end
     where batch_export_id = $3 and data_interval_start = $4 and data_interval_end = $5
       and (not publish_claimed or ${isInherited}) and obsolete_at is null`,
    [
      stored.stream_id,
      stored.recorded_at,
      spec.batch_export_id,
      spec.data_interval_start,
      spec.data_interval_end,
      inherited?.run_id ?? null,
      keys,
      inherited?.progress.generation ?? null,
    ],
  );
}

/**
 * Adds the files of a manifest that the run found in the bucket: they are published, and no run of the journal may own
 * them. An upload with the key of one is a file that the run planned before it found the key taken. The run's own objects,
 * which have no ordinal, move to the generation above the manifest's; no manifest refers to them yet.
 */
async function adoptObjects(
  connection: Connection,
  { stream_id, global_position }: StoredEvent,
  adopted: AdoptedManifest,
): Promise<void> {
  await connection.query(
    `update exportd.destination_objects set generation = $2, publish_claimed = false
     where run_id = $1 and ordinal = 0 and obsolete_at is null`,
    [stream_id, adopted.raised_to],
  );
  const { files, rejected_file, kept, earlier, generation } = adopted;
  const current = [...files, ...(rejected_file ? [rejected_file] : [])];
  const objects = [...current.map(({ key }) => ({ key, generation })), ...kept, ...earlier];
  await connection.query(
    `insert into exportd.destination_objects (position, ordinal, batch_export_id, run_id, config_version,
       data_interval_start, data_interval_end, generation, object_type, key, publish_claimed)
     select $2, object.ordinal, run.batch_export_id, run.id, run.config_version, run.data_interval_start,
       run.data_interval_end, object.generation, 'file', object.key, true
     from exportd.batch_export_runs run,
       unnest($3::text[], $4::integer[]) with ordinality as object (key, generation, ordinal)
     where run.id = $1 and not exists (
       select from exportd.destination_objects known where known.batch_export_id = run.batch_export_id
         and known.data_interval_start = run.data_interval_start and known.data_interval_end = run.data_interval_end
         and known.key = object.key and known.object_type <> 'upload')`,
    [stream_id, global_position, objects.map(({ key }) => key), objects.map((object) => object.generation)],
  );
}

/** Gives the files of a former manifest to the run that adds late rows to them: its manifest names them too. */
async function takeOverBase(
  connection: Connection,
  runId: string,
  { run_id, generation }: ReplacementCheck['replaced'],
): Promise<void> {
  await connection.query(
    `update exportd.destination_objects base set run_id = run.id, generation = run.generation, range = 0,
       file = jsonb_build_object('generation', base.generation) || base.file
     from exportd.batch_export_runs run
     where run.id = $1 and base.run_id = $2 and base.generation = $3 and base.object_type = 'file'
       and base.obsolete_at is null`,
    [runId, run_id, generation],
  );
}

/**
 * Publishes the run's files and manifest. All other objects of the interval become obsolete, except published ones that
 * the run leaves: files that its manifest names, and generations in another bucket.
 */
async function publishObjects(
  connection: Connection,
  stored: StoredEvent,
  manifestKey: string,
  { earlier_generations: { kept, earlier, elsewhere }, replacement }: ExistingRun,
): Promise<void> {
  const { stream_id, recorded_at, global_position } = stored;
  if (replacement?.base) await takeOverBase(connection, stream_id, replacement.replaced);
  const staying = [...kept, ...earlier].map(({ key }) => key);
  const ofInterval = `other.batch_export_id = run.batch_export_id
    and other.data_interval_start = run.data_interval_start and other.data_interval_end = run.data_interval_end`;
  // The manifest overwrites the object with the same key, so the new row replaces the old one.
  await connection.query(
    `delete from exportd.destination_objects other using exportd.batch_export_runs run
     where run.id = $1 and ${ofInterval}
       and other.object_type = 'manifest' and other.key = $2 and other.config_version = run.config_version`,
    [stream_id, manifestKey],
  );
  const isCurrent = `other.run_id = run.id and other.generation = run.generation and other.object_type = 'file'`;
  await connection.query(
    `update exportd.destination_objects other set
       publish_claimed = publish_claimed or (${isCurrent}),
       obsolete_at = case when ${isCurrent} then null else $2::timestamptz end
     from exportd.batch_export_runs run
     where run.id = $1 and ${ofInterval} and other.obsolete_at is null
       and not (other.publish_claimed and (other.object_type = 'file' and other.key = any($3) or other.generation = any($4)))`,
    [stream_id, recorded_at, staying, elsewhere],
  );
  await connection.query(
    `insert into exportd.destination_objects (position, batch_export_id, run_id, config_version, data_interval_start,
       data_interval_end, generation, object_type, key, publish_claimed)
     select $2, batch_export_id, id, config_version, data_interval_start, data_interval_end, generation, 'manifest', $3,
       true from exportd.batch_export_runs where id = $1`,
    [stream_id, global_position, manifestKey],
  );
}

const isObject = `object.run_id = $1 and object.key = $2 and object.upload_id is not distinct from $3
  and object.upload_token is not distinct from $4 and object.obsolete_at is not null`;

/** Records since when deleting an object, or anything at its location, has failed. */
async function recordDeletionFailure(
  connection: Connection,
  { stream_id, recorded_at }: StoredEvent,
  { key, upload_id, upload_token, location_wide }: RunEventData<'RunObjectDeletionFailed'>,
): Promise<void> {
  await connection.query(
    location_wide
      ? `insert into exportd.location_failures (batch_export_id, config_version, failing_since)
         select object.batch_export_id, object.config_version, $5 from exportd.destination_objects object
         where ${isObject} limit 1
         on conflict do nothing`
      : `update exportd.destination_objects object set failing_since = coalesce(object.failing_since, $5)
         where ${isObject}`,
    [stream_id, key, upload_id, upload_token, recorded_at],
  );
}

/** Clears the failure of a location after an object was deleted there. */
async function clearLocationFailure(
  connection: Connection,
  { stream_id }: StoredEvent,
  { key, upload_id, upload_token }: RunEventData<'RunObjectDeleted'>,
): Promise<void> {
  await connection.query(
    `delete from exportd.location_failures failure using exportd.destination_objects object
     where ${isObject} and failure.batch_export_id = object.batch_export_id
       and failure.config_version = object.config_version`,
    [stream_id, key, upload_id, upload_token],
  );
}

/** Deletes the row of a deleted object. One that object lock keeps stays, to be deleted after that. */
async function deleteOrHold(
  connection: Connection,
  { stream_id }: StoredEvent,
  { key, upload_id, upload_token, held }: RunEventData<'RunObjectDeleted'>,
): Promise<void> {
  const identity = [stream_id, key, upload_id, upload_token];
  await (held
    ? connection.query(
        `update exportd.destination_objects object set held_version = $5, held_until = $6 where ${isObject}`,
        [...identity, held.version_id, held.until],
      )
    : connection.query(`delete from exportd.destination_objects object where ${isObject}`, identity));
}

const table: CachedTable = {
  name: 'exportd.destination_objects',
  key: ['position', 'ordinal'],
  lookups: {
    run: { columns: ['run_id'] },
    interval: { columns: ['batch_export_id', 'data_interval_start', 'data_interval_end'] },
    export: { columns: ['batch_export_id'] },
  },
};
const failuresTable: CachedTable = {
  name: 'exportd.location_failures',
  key: ['batch_export_id', 'config_version'],
  lookups: { export: { columns: ['batch_export_id'] } },
};

/** SQL condition: the object is needed, but no manifest can refer to it. */
const unpublished = 'not publish_claimed and obsolete_at is null';

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
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    // Objects to which a manifest of a deleted export refers stay in the bucket.
    if (event.stream_type === 'batch_export' && event.type === 'BatchExportDeleted')
      await connection.query(
        `update exportd.destination_objects set obsolete_at = $2 where batch_export_id = $1 and ${unpublished}`,
        [event.stream_id, event.recorded_at],
      );
    // A later run of the interval reads from the manifest which files it replaces.
    const digest = digestOf(event);
    if (digest)
      await connection.query('delete from exportd.destination_objects where run_id = any($1)', [
        digest.run_ids,
      ]);
  },
  batch: {
    tables: [table, failuresTable],
    wants: ({ stored, state }): WantedRows[] => {
      if (stored.stream_type !== 'run' || ignored.has(stored.type)) return [];
      const isNew = stored.type === 'RunCreated';
      const ofRun: WantedRows = { table, lookup: 'run', values: [stored.stream_id], isNew };
      const { spec } = state as ExistingRun;
      if (isNew || stored.type === 'RunCompleted') return [ofRun, intervalOf(spec)];
      return stored.type === 'RunObjectDeleted'
        ? [ofRun, { table: failuresTable, lookup: 'export', values: [spec.batch_export_id] }]
        : [ofRun];
    },
    fold: foldRow,
  },
};

const intervalOf = ({ batch_export_id, data_interval_start, data_interval_end }: RunSpec): WantedRows => ({
  table,
  lookup: 'interval',
  values: [batch_export_id, data_interval_start, data_interval_end],
});

/** A row of the table, as far as the fold of a rebuild reads it. */
interface ObjectRow {
  readonly ordinal: number;
  readonly run_id: string;
  readonly config_version: number;
  readonly generation: number;
  readonly object_type: 'upload' | 'file' | 'manifest';
  readonly range: number | null;
  readonly key: string;
  readonly upload_id: string | null;
  readonly upload_token: string | null;
  readonly file: object | null;
  readonly publish_claimed: boolean;
  readonly obsolete_at: string | null;
}

/** The fold of a rebuild. What is rare is left to the statements above. */
async function foldRow(rows: RowCache, { stored, state }: FoldedEvent): Promise<boolean> {
  if (stored.stream_type === 'batch_export') return stored.type !== 'BatchExportDeleted';
  if (stored.stream_type !== 'run' || ignored.has(stored.type)) return true;
  const event = stored as unknown as RunEvent;
  const { stream_id: id, recorded_at: at, global_position: position } = stored;
  const run = state as ExistingRun;
  /** Changes the rows of a lookup that are not obsolete and that `changesOf` returns changes of. */
  const change = async (
    lookup: 'run' | 'interval',
    changesOf: (object: ObjectRow) => Row | undefined,
  ): Promise<void> => {
    const values = lookup === 'run' ? [id] : intervalOf(run.spec).values;
    for (const row of await rows.find(table, lookup, ...values)) {
      const object = row as unknown as ObjectRow;
      const changes = object.obsolete_at === null ? changesOf(object) : undefined;
      if (changes) rows.change(table, row, changes);
    }
  };
  const markObsolete = (isObsolete: (object: ObjectRow) => boolean = () => true) =>
    change('run', (object) =>
      !object.publish_claimed && isObsolete(object) ? { obsolete_at: at } : undefined,
    );
  const insert = (object: Row) =>
    rows.set(table, {
      position,
      ordinal: 0,
      batch_export_id: run.spec.batch_export_id,
      run_id: id,
      config_version: run.spec.config_version,
      data_interval_start: run.spec.data_interval_start,
      data_interval_end: run.spec.data_interval_end,
      range: null,
      upload_id: null,
      upload_token: null,
      file: null,
      publish_claimed: false,
      obsolete_at: null,
      failing_since: null,
      held_version: null,
      held_until: null,
      ...object,
    });
  switch (event.type) {
    case 'RunCreated': {
      const { inherited } = event.data;
      const { ranges = [], rejected_file = null, generation } = inherited?.progress ?? {};
      const keys = new Set(
        [...ranges.map(({ upload }) => upload), rejected_file].map((object) => object?.key),
      );
      const isInherited = (object: ObjectRow) =>
        object.run_id === inherited?.run_id &&
        ((object.generation === generation && object.file !== null) || keys.has(object.key));
      await change('interval', (object) => {
        if (isInherited(object)) return { run_id: id };
        return object.publish_claimed ? undefined : { obsolete_at: at };
      });
      return true;
    }
    case 'RunExportStarted':
    case 'RunGenerationReserved': {
      const reserved = event.data.generation;
      if (reserved === undefined) return true;
      await change('run', ({ generation, publish_claimed, ordinal }) => {
        if (generation >= reserved) return undefined;
        return publish_claimed ? { ordinal: Math.max(ordinal, 1) } : { obsolete_at: at };
      });
      return true;
    }
    case 'RunUploadCreated': {
      const { generation, range, key, upload_id, upload_token } = event.data;
      await markObsolete(
        (object) =>
          object.generation === generation && object.range === range && object.object_type === 'upload',
      );
      insert({ object_type: 'upload', generation, range, key, upload_id, upload_token });
      return true;
    }
    case 'RunFileCompleted': {
      const { generation, file } = event.data;
      const { key, ...facts } = file;
      await change('run', (object) =>
        object.generation === generation && object.key === key && object.object_type === 'upload'
          ? { object_type: 'file', upload_id: null, file: facts }
          : undefined,
      );
      return true;
    }
    case 'RunRejectedFilePlanned':
      insert({ object_type: 'file', generation: event.data.generation, key: event.data.file.key });
      return true;
    case 'RunPublishStarted':
    case 'RunPublishWithdrawn':
      await change('run', ({ generation, object_type }) =>
        generation === event.data.generation && object_type === 'file'
          ? { publish_claimed: event.type === 'RunPublishStarted' }
          : undefined,
      );
      return true;
    case 'RunCompleted': {
      if (run.replacement?.base) return false;
      await publishRows(rows, run, stored);
      insert({
        object_type: 'manifest',
        generation: run.generation,
        key: event.data.manifest_key,
        publish_claimed: true,
      });
      return true;
    }
    case 'RunCancelled':
      await change('run', ({ ordinal, object_type, publish_claimed }) =>
        ordinal === 0 && object_type === 'file' && publish_claimed ? { obsolete_at: at } : undefined,
      );
      await markObsolete();
      return true;
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunRetryCancelled':
      await markObsolete();
      return true;
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      if (event.data.retry_delay_seconds === null) await markObsolete();
      return true;
    case 'RunObjectDeleted':
      await deleteRows(rows, stored, event.data);
      return true;
    default:
      return false;
  }
}

/** Does what `publishObjects` does for a run without a base, before it inserts the manifest. */
async function publishRows(
  rows: RowCache,
  { spec, generation, earlier_generations: { kept, earlier, elsewhere } }: ExistingRun,
  { stream_id, recorded_at, data }: StoredEvent,
): Promise<void> {
  const { manifest_key } = data as RunEventData<'RunCompleted'>;
  const staying = new Set([...kept, ...earlier].map(({ key }) => key));
  for (const row of await rows.find(table, 'interval', ...intervalOf(spec).values)) {
    const object = row as unknown as ObjectRow;
    const { object_type, key, config_version, run_id, publish_claimed } = object;
    if (object_type === 'manifest' && key === manifest_key && config_version === spec.config_version) {
      rows.delete(table, row);
      continue;
    }
    if (object.obsolete_at !== null) continue;
    const stays = (object_type === 'file' && staying.has(key)) || elsewhere.includes(object.generation);
    if (publish_claimed && stays) continue;
    const isCurrent = run_id === stream_id && object.generation === generation && object_type === 'file';
    rows.change(table, row, isCurrent ? { publish_claimed: true } : { obsolete_at: recorded_at });
  }
}

/** Deletes the rows of a deleted object, and the failure of its location; what a lock holds stays. */
async function deleteRows(
  rows: RowCache,
  { stream_id }: StoredEvent,
  { key, upload_id, upload_token, deleted, held }: RunEventData<'RunObjectDeleted'>,
): Promise<void> {
  for (const row of await rows.find(table, 'run', stream_id)) {
    const object = row as unknown as ObjectRow;
    if (object.key !== key || object.upload_id !== upload_id || object.upload_token !== upload_token)
      continue;
    if (object.obsolete_at === null) continue;
    if (held) rows.change(table, row, { held_version: held.version_id, held_until: held.until });
    else rows.delete(table, row);
    if (!deleted) continue;
    for (const failure of await rows.find(failuresTable, 'export', row.batch_export_id))
      if (failure.config_version === object.config_version) rows.delete(failuresTable, failure);
  }
}

/** Events of runs that change no object. */
const ignored: ReadonlySet<string> = new Set<RunEvent['type']>([
  'RunCounted',
  'RunReplacementChecked',
  'RunPublishResumed',
  'RunTableCommitPlanned',
  'RunTableCommitted',
  'RunAttemptStarted',
  'RunAttemptFailed',
  'RunUploadResumed',
  'RunPartPlanned',
  'RunRangeFinished',
  'RunExportFinished',
  'RunContinuedAsNew',
  'RunCancelRequested',
  'RunBarrierAdvanced',
  'RunSettled',
  'IntervalCompared',
]);

async function foldRun(connection: Connection, stored: StoredEvent, folded?: FoldedState): Promise<void> {
  const id = stored.stream_id;
  const at = stored.recorded_at;
  const event = stored as unknown as RunEvent;
  const change = (statement: string, ...values: readonly unknown[]) =>
    connection.query(statement, [id, ...values]);
  const markObsolete = (condition: string, ...values: readonly unknown[]) =>
    change(
      `update exportd.destination_objects set obsolete_at = $2 where run_id = $1 and ${unpublished} and ${condition}`,
      at,
      ...values,
    );
  switch (event.type) {
    case 'RunCreated':
      await inheritObjects(connection, stored, event.data);
      return;
    case 'RunExportStarted':
    case 'RunGenerationReserved':
      if (event.data.generation === undefined) return;
      // Files that the run inherited with a claim belong to the manifest of a failed run, which may be stored.
      await change(
        `update exportd.destination_objects set
           obsolete_at = case when publish_claimed then null else $2::timestamptz end,
           ordinal = case when publish_claimed then greatest(ordinal, 1) else ordinal end
         where run_id = $1 and generation < $3 and obsolete_at is null`,
        at,
        event.data.generation,
      );
      return;
    case 'RunUploadCreated': {
      // A file that is written in one request is an upload without id until it is complete.
      const { generation, range, key, upload_id, upload_token } = event.data;
      await markObsolete(`generation = $3 and range = $4 and object_type = 'upload'`, generation, range);
      await insertObject(connection, stored, {
        object_type: 'upload',
        generation,
        range,
        key,
        upload_id,
        upload_token,
      });
      return;
    }
    case 'RunFileCompleted': {
      const { key, ...facts } = event.data.file;
      await change(
        `update exportd.destination_objects set object_type = 'file', upload_id = null, file = $4
         where run_id = $1 and generation = $2 and key = $3 and object_type = 'upload' and obsolete_at is null`,
        event.data.generation,
        key,
        JSON.stringify(facts),
      );
      return;
    }
    case 'RunRejectedFilePlanned': {
      const { generation, file } = event.data;
      const none = { range: null, upload_id: null, upload_token: null };
      await insertObject(connection, stored, { object_type: 'file', generation, key: file.key, ...none });
      return;
    }
    case 'RunKeyTaken':
      // Without a token, the file of rejected rows could not be told from the other object, which must not be deleted.
      if (event.data.range === null)
        await change(
          `delete from exportd.destination_objects
           where run_id = $1 and generation = $2 and key = $3 and object_type = 'file' and upload_token is null`,
          event.data.generation,
          event.data.key,
        );
      return;
    case 'RunPublishStarted':
    case 'RunPublishWithdrawn':
      await change(
        `update exportd.destination_objects set publish_claimed = $3
         where run_id = $1 and generation = $2 and object_type = 'file' and obsolete_at is null`,
        event.data.generation,
        event.type === 'RunPublishStarted',
      );
      return;
    case 'RunManifestAdopted':
      await adoptObjects(connection, stored, event.data);
      return;
    case 'RunCompleted':
      await publishObjects(
        connection,
        stored,
        event.data.manifest_key,
        await readRun(connection, stored, folded),
      );
      return;
    case 'RunCancelled':
      // A run that was publishing is cancelled with its export, or once its bucket has no manifest of it. Whether a manifest
      // names its files is checked when they are deleted.
      await change(
        `update exportd.destination_objects set obsolete_at = $2
         where run_id = $1 and ordinal = 0 and object_type = 'file' and publish_claimed and obsolete_at is null`,
        at,
      );
      await markObsolete('true');
      return;
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunRetryCancelled':
      await markObsolete('true');
      return;
    case 'RunFailedRetryable':
    case 'RunTimedOut':
      // Otherwise the retry resumes them, or makes them obsolete when it starts.
      if (event.data.retry_delay_seconds === null) await markObsolete('true');
      return;
    case 'RunObjectDeletionFailed':
      await recordDeletionFailure(connection, stored, event.data);
      return;
    case 'RunObjectDeleted':
      if (event.data.deleted) await clearLocationFailure(connection, stored, event.data);
      await deleteOrHold(connection, stored, event.data);
      return;
    case 'RunCounted':
    case 'RunReplacementChecked':
    case 'RunPublishResumed':
    case 'RunTableCommitPlanned':
    case 'RunTableCommitted':
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
