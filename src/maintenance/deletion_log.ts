import type { Deletion } from '../decisions/obsolete_objects.ts';
import type { Pool } from '../journal/database.ts';
import { writeLogLine, type LogLevel } from '../journal/log_lines.ts';
import type { LocationCache } from './location_cache.ts';

/** Tells the owner of an export what was removed, and what stays in the bucket for good and why: a line for each why. */
export async function logDeletions(
  pool: Pool,
  places: LocationCache,
  removals: readonly Deletion[],
): Promise<void> {
  const [first] = removals;
  if (!first) return;
  const { team_id, batch_export_id } = first.object;
  const write = (level: LogLevel, message: string) =>
    writeLogLine(pool, { team_id, batch_export_id, run_id: null, level, message });
  const removed = removals.filter((removal) => removal.deleted);
  if (removed.length > 0) await write('INFO', `Cleaned up what nobody needs any more: ${countOf(removed)}.`);
  const kept = Map.groupBy(
    removals.filter((removal) => !removal.deleted),
    ({ reason }) => reason ?? '',
  );
  for (const [reason, ofReason] of kept)
    await write(
      'WARNING',
      `Left behind although nobody needs it any more: ${countOf(ofReason)}, such as ${await nameOf(places, ofReason)}. ${reason}`,
    );
}

const names = {
  upload: ['unfinished upload', 'unfinished uploads'],
  file: ['file', 'files'],
  manifest: ['manifest', 'manifests'],
} as const;

/** `2 files and 1 unfinished upload`. */
function countOf(removals: readonly Deletion[]): string {
  const byKind = Map.groupBy(removals, ({ object }) => object.kind);
  return [...byKind]
    .map(([kind, { length }]) => `${length} ${names[kind][length === 1 ? 0 : 1]}`)
    .join(' and ');
}

/** The full name of the first; its key alone where its place cannot be opened. */
async function nameOf(places: LocationCache, [first]: readonly Deletion[]): Promise<string> {
  if (!first) return '';
  const { object } = first;
  const destination = await places.of(object, object.config_version).catch(() => undefined);
  return destination?.nameOf(object.key) ?? object.key;
}
