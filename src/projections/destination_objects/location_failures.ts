import type { RunEvent } from '../../domain/run_events.ts';
import type { Connection } from '../../journal/database.ts';
import type { StoredEvent } from '../../journal/stored_event.ts';

type EventData<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];

const isObject = `object.run_id = $1 and object.key = $2 and object.upload_id is not distinct from $3
  and object.upload_token is not distinct from $4 and object.obsolete_at is not null`;

/** Records since when deleting an object, or anything at its location, has failed. */
export async function recordDeletionFailure(
  connection: Connection,
  { stream_id, recorded_at }: StoredEvent,
  { key, upload_id, upload_token, location_wide }: EventData<'RunObjectDeletionFailed'>,
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
export async function clearLocationFailure(
  connection: Connection,
  { stream_id }: StoredEvent,
  { key, upload_id, upload_token }: EventData<'RunObjectDeleted'>,
): Promise<void> {
  await connection.query(
    `delete from exportd.location_failures failure using exportd.destination_objects object
     where ${isObject} and failure.batch_export_id = object.batch_export_id
       and failure.config_version = object.config_version`,
    [stream_id, key, upload_id, upload_token],
  );
}
