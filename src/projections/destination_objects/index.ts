import type { BatchExportEvent } from '../../domain/batch_export.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import type { Connection } from '../../journal/database.ts';
import type { FoldedState } from '../../journal/projector.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';
import type { Projection } from '../projection.ts';
import { clearLocationFailure, recordDeletionFailure } from './location_failures.ts';
import { readRun } from '../read_run.ts';
import { adoptObjects, publishObjects, insertObject, inheritObjects } from './interval_objects.ts';

/**
 * One row per object of a destination that is known to the journal and not deleted: open uploads, files and manifests.
 * An obsolete object never becomes current again: no manifest will refer to it and no run will resume it.
 */
export const destinationObjectsProjection: Projection = {
  name: 'destination_objects',
  version: 9,
  owns: ['exportd.destination_objects', 'exportd.location_failures'],
  tables: `
    create table exportd.destination_objects (
      -- Journal position of the event that created the object.
      position bigint not null,
      -- Distinguishes the objects of an adopted manifest.
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
      -- The facts of a completed file; null for every other object.
      file jsonb,
      -- Whether a manifest may refer to it, because its run claimed publishing.
      publish_claimed boolean not null default false,
      obsolete_at timestamptz,
      -- When deleting it first failed, for a reason specific to it.
      failing_since timestamptz,
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
      where obsolete_at is not null`,
  apply: async (connection, event, folded) => {
    if (event.stream_type === 'run') await foldRun(connection, event, folded);
    if (event.stream_type === 'batch_export') await foldExport(connection, event);
  },
};

/** SQL condition: the object is needed, but no manifest can refer to it. */
const unpublished = 'not publish_claimed and obsolete_at is null';

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
    case 'RunGenerationReserved':
      await markObsolete('generation < $3', event.data.generation);
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
    case 'RunFileCompleted':
      await change(
        `update exportd.destination_objects set object_type = 'file', upload_id = null, file = $4
         where run_id = $1 and generation = $2 and key = $3 and object_type = 'upload' and obsolete_at is null`,
        event.data.generation,
        event.data.file.key,
        JSON.stringify(event.data.file),
      );
      return;
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
    case 'RunFailed':
    case 'RunTerminated':
    case 'RunCancelled':
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
      await change(
        `delete from exportd.destination_objects
         where run_id = $1 and key = $2 and upload_id is not distinct from $3 and upload_token is not distinct from $4
           and obsolete_at is not null`,
        event.data.key,
        event.data.upload_id,
        event.data.upload_token,
      );
      return;
    case 'RunCounted':
    case 'RunReplacementChecked':
    case 'RunPublishResumed':
    case 'RunExportStarted':
    case 'RunAttemptStarted':
    case 'RunAttemptFailed':
    case 'RunUploadResumed':
    case 'RunPartPlanned':
    case 'RunRangeFinished':
    case 'RunExportFinished':
    case 'RunContinuedAsNew':
    case 'RunBarrierAdvanced':
    case 'RunSettled':
    case 'IntervalCompared':
      return;
  }
}

async function foldExport(connection: Connection, stored: StoredEvent): Promise<void> {
  const { type } = stored as unknown as BatchExportEvent;
  if (type !== 'BatchExportDeleted') return;
  // Objects to which a manifest refers, or may soon refer, stay in the bucket.
  await connection.query(
    `update exportd.destination_objects set obsolete_at = $2 where batch_export_id = $1 and ${unpublished}`,
    [stored.stream_id, stored.recorded_at],
  );
}
