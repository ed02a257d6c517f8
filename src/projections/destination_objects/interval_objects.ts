import type { RunEvent } from '../../domain/run.ts';
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
  const keys = [
    ...ranges.flatMap(({ upload, files }) => [...(upload ? [upload] : []), ...files]),
    ...(rejected_file ? [rejected_file] : []),
  ].map(({ key }) => key);
  await connection.query(
    `update exportd.destination_objects set
       run_id = case when run_id = $6 and key = any($7) then $1 else run_id end,
       obsolete_at = case when run_id = $6 and key = any($7) then null else $2::timestamptz end
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
    ],
  );
}

/** Publishes the run's files and manifest. All other objects of the interval become obsolete. */
export async function publishObjects(
  connection: Connection,
  stored: StoredEvent,
  manifestKey: string,
): Promise<void> {
  const { stream_id, recorded_at, global_position } = stored;
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
     where run.id = $1 and ${ofInterval} and other.obsolete_at is null`,
    [stream_id, recorded_at],
  );
  await connection.query(
    `insert into exportd.destination_objects (position, batch_export_id, run_id, config_version, data_interval_start,
       data_interval_end, generation, object_type, key, publish_claimed)
     select $2, batch_export_id, id, config_version, data_interval_start, data_interval_end, generation, 'manifest', $3,
       true from exportd.batch_export_runs where id = $1`,
    [stream_id, global_position, manifestKey],
  );
}
