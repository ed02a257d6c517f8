import type { Deletion } from '../decisions/obsolete_objects.ts';
import type { Pool } from '../journal/database.ts';
import { writeLogLine, type LogLevel } from '../journal/log_lines.ts';
import type { LocationCache } from './location_cache.ts';

/** Writes to the export's log what was deleted, and what stays permanently: one line for each reason. */
export async function logDeletions(
  pool: Pool,
  locations: LocationCache,
  deletions: readonly Deletion[],
): Promise<void> {
  const [first] = deletions;
  if (!first) return;
  const { team_id, batch_export_id } = first.object;
  const write = (level: LogLevel, message: string) =>
    writeLogLine(pool, { team_id, batch_export_id, run_id: null, level, message });
  const deleted = deletions.filter((deletion) => deletion.deleted);
  if (deleted.length > 0) await write('INFO', `Deleted obsolete objects: ${countByKind(deleted)}.`);
  const keptByReason = Map.groupBy(
    deletions.filter((deletion) => !deletion.deleted),
    ({ reason }) => reason ?? '',
  );
  for (const [reason, kept] of keptByReason)
    await write(
      'WARNING',
      `Could not delete obsolete objects, which stay in the bucket: ${countByKind(kept)}, such as ${await exampleOf(locations, kept)}. ${reason}`,
    );
}

const names = {
  upload: ['unfinished upload', 'unfinished uploads'],
  file: ['file', 'files'],
  manifest: ['manifest', 'manifests'],
} as const;

/** `2 files and 1 unfinished upload`. */
function countByKind(deletions: readonly Deletion[]): string {
  const byKind = Map.groupBy(deletions, ({ object }) => object.object_type);
  return [...byKind]
    .map(([kind, { length }]) => `${length} ${names[kind][length === 1 ? 0 : 1]}`)
    .join(' and ');
}

/** The full name of the first object, or its key when its location cannot be opened. */
async function exampleOf(locations: LocationCache, [first]: readonly Deletion[]): Promise<string> {
  if (!first) return '';
  const { object } = first;
  const location = await locations.of(object, object.config_version).catch(() => undefined);
  return location?.nameOf(object.key) ?? object.key;
}
