import type { AdoptedManifest } from '../../domain/earlier_generations.ts';
import type { ExistingRun } from '../../domain/run_state.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import type { Connection } from '../../journal/database.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';

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
export async function insertObject(
  connection: Connection,
  stored: StoredEvent,
  named: NewObject,
): Promise<void> {
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
export async function inheritObjects(
  connection: Connection,
  stored: StoredEvent,
  { inherited, ...spec }: Extract<RunEvent, { type: 'RunCreated' }>['data'],
): Promise<void> {
  const { ranges = [], rejected_file = null } = inherited?.progress ?? {};
  const keys = [...ranges.map(({ upload }) => upload), rejected_file].flatMap((object) => object?.key ?? []);
  const isInherited = 'run_id = $6 and (generation = $8 and file is not null or key = any($7))';
  await connection.query(
    `update exportd.destination_objects set
       run_id = case when ${isInherited} then $1 else run_id end,
       obsolete_at = case when ${isInherited} then null else $2::timestamptz end
     where batch_export_id = $3 and data_interval_start = $4 and data_interval_end = $5
       and not publish_claimed and obsolete_at is null`,
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
 * them. An upload with the key of one is a file that the run planned before it found the key taken. The run's own objects, which have no ordinal, move to the generation above the manifest's; no manifest refers to
 * them yet.
 */
export async function adoptObjects(
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

/**
 * Publishes the run's files and manifest. All other objects of the interval become obsolete, except published ones that
 * the run leaves: files that its manifest names, and generations in another bucket.
 */
export async function publishObjects(
  connection: Connection,
  stored: StoredEvent,
  manifestKey: string,
  { earlier_generations: { kept, earlier, elsewhere } }: Pick<ExistingRun, 'earlier_generations'>,
): Promise<void> {
  const { stream_id, recorded_at, global_position } = stored;
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
