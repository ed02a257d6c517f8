import { areKeysUnreadable, KeysUnreadable, mergeKeys, readExportedKeys } from '../export/exported_keys.ts';
import { readFiles } from '../decisions/read_files.ts';
import type { IntervalComparison } from '../decisions/due_comparisons.ts';
import { bucketInterval, differingBuckets, type Fingerprint } from '../domain/fingerprint.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { SortKey } from '../domain/exported_files.ts';
import { intervalOf } from '../export/export_context.ts';
import { filesHaveKeys } from '../source/pages.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** How many rows are only in the source, and only in the bucket. */
export interface DifferingKeys {
  readonly added_rows: number;
  readonly missing_rows: number;
}

/** An interval with more rows is not merged: that takes longer than a call may. */
const maxRows = 5_000_000;

/**
 * Merges the keys of the buckets in which the source and the files of a manifest differ. A bucket with fewer rows can
 * have late ones, which its fingerprint does not show.
 * @returns null if keys cannot be read, or are too many
 */
export async function findDifferingKeys(
  {
    journal,
    source,
    readSelection,
    openLocation,
  }: Pick<MaintenanceDependencies, 'journal' | 'source' | 'readSelection' | 'openLocation'>,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  { held, now }: { readonly held: Fingerprint; readonly now: Fingerprint },
  signal: AbortSignal,
): Promise<DifferingKeys | null> {
  const selection = await readSelection(interval);
  // All events of the project say nothing about the files, which have only the selected ones.
  if (now.all_events || interval.bucket_rows > maxRows || !filesHaveKeys(selection)) return null;
  const ranges = differingBuckets(held, now).map(({ index }) =>
    bucketInterval(intervalOf(run.spec), now, index),
  );
  const counts = { held: 0, source: 0 };
  async function* heldKeys(keys: AsyncIterable<SortKey>): AsyncGenerator<SortKey> {
    for await (const key of keys) {
      counts.held += 1;
      yield key;
    }
  }
  async function* sourceKeys(): AsyncGenerator<SortKey> {
    const rows = { model: run.spec.model, team_id: interval.team_id, selection };
    for (const range of ranges) yield* source.keys({ ...rows, interval: range }, signal);
  }
  try {
    const location = await openLocation(interval);
    try {
      const files = readExportedKeys(run, await readFiles(journal.pool, interval.run_id, run), {
        location,
        ranges,
        onRow: () => undefined,
        // Its rows would pass for late ones.
        onAbsent: (key) => Promise.reject(new KeysUnreadable(`${key} no longer exists`)),
        signal,
      });
      const missing_rows = await mergeKeys(heldKeys(files), sourceKeys(), () => {
        counts.source += 1;
      });
      return { added_rows: counts.source - (counts.held - missing_rows), missing_rows };
    } finally {
      location.close();
    }
  } catch (error) {
    if (areKeysUnreadable(error)) return null;
    throw error;
  }
}
