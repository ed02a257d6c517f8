/** Which rows of an interval differ: the keys of the source, merged with those of the files. */
import type { IntervalComparison } from '../decisions/comparisons.ts';
import { readFiles } from '../decisions/read_files.ts';
import type { Destination } from '../destination/open_destination.ts';
import {
  areComparable,
  bucketInterval,
  bucketIntervals,
  bucketsOf,
  countFewerRows,
  differingBuckets,
  type Fingerprint,
} from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { SortKey } from '../domain/sort_key.ts';
import {
  areKeysUnreadable,
  keysNotPublished,
  KeysUnreadable,
  mergeKeys,
  readEarlierKeys,
  readExportedKeys,
} from '../export/exported_keys.ts';
import { intervalOf } from '../export/run_interval.ts';
import { filesHaveKeys } from '../source/read_fingerprints.ts';
import type { RowKey } from '../source/source.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** What comparing an interval requires. */
export type DifferenceDependencies = Pick<
  MaintenanceDependencies,
  'journal' | 'source' | 'readSelection' | 'openLocation'
>;

/** How many rows are only in the source, and only in the bucket; those that are kept are not counted. */
interface DifferingKeys {
  readonly added_rows: number;
  readonly missing_rows: number;
}

/** An interval with more rows is not merged: that takes longer than a call may. */
export const maxMergedRows = 5_000_000;

/**
 * Merges the keys of the buckets in which the source and the files of a manifest differ. A bucket with fewer rows can
 * have late ones, which its fingerprint does not show.
 * @returns null if keys cannot be read
 */
export async function findDifferingKeys(
  dependencies: DifferenceDependencies,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  { published, now }: { readonly published: Fingerprint; readonly now: Fingerprint },
  { signal, onMissing }: { readonly signal: AbortSignal; readonly onMissing?: (key: SortKey) => void },
): Promise<DifferingKeys | null> {
  const { source, readSelection } = dependencies;
  const selection = await readSelection(interval);
  // All events of the project say nothing about the files, which have only the selected ones.
  const rows = { model: run.spec.model, team_id: interval.team_id, selection };
  if (now.all_events || !filesHaveKeys(rows)) return null;
  const differing = differingBuckets(published, now);
  const ranges = differing.map(({ index }) => bucketInterval(intervalOf(run.spec), now, index));
  const counts = { published: 0, source: 0 };
  async function* publishedKeys(keys: AsyncIterable<SortKey>): AsyncGenerator<SortKey> {
    for await (const key of keys) {
      counts.published += 1;
      yield key;
    }
  }
  async function* sourceKeys(): AsyncGenerator<SortKey> {
    for (const range of ranges) yield* source.keys({ ...rows, interval: range }, signal);
  }
  return withExportedKeys(dependencies, { run, interval }, { ranges, signal }, async (files) => {
    const missing_rows = await mergeKeys(publishedKeys(files), sourceKeys(), {
      key: () => {
        counts.source += 1;
      },
      missing: onMissing,
    });
    const kept = rowsIn(interval.kept_rows, new Set(differing.map(({ index }) => index)));
    return {
      added_rows: counts.source - (counts.published - missing_rows),
      missing_rows: missing_rows - kept,
    };
  });
}

/** How many rows a fingerprint has in some buckets. */
const rowsIn = (rows: Fingerprint | null, indexes: ReadonlySet<number>): number =>
  rows === null
    ? 0
    : bucketsOf(rows).reduce((sum, bucket) => sum + (indexes.has(bucket.index) ? bucket.rows : 0), 0);

/**
 * Reads the keys that the files of a manifest have in some ranges.
 * @returns null if they cannot be read for good
 */
async function withExportedKeys<Result>(
  { journal, openLocation }: Pick<MaintenanceDependencies, 'journal' | 'openLocation'>,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  { ranges, signal }: { readonly ranges: readonly DataInterval[]; readonly signal: AbortSignal },
  use: (keys: AsyncGenerator<RowKey>, location: Destination) => Promise<Result>,
): Promise<Result | null> {
  try {
    const location = await openLocation(interval);
    try {
      const keys = readExportedKeys(run, await readFiles(journal.pool, interval.run_id, run), {
        location,
        ranges,
        onRow: () => undefined,
        // The rows of the source would pass for late ones.
        onAbsent: (key) => Promise.reject(new KeysUnreadable(`${key} no longer exists`)),
        signal,
      });
      return await use(keys, location);
    } finally {
      location.close();
    }
  } catch (error) {
    if (areKeysUnreadable(error)) return null;
    throw error;
  }
}

/** The late persons of an interval. */
interface LatePersons {
  readonly added_rows: number;
  /** Whether keys were compared, so that there are no others. */
  readonly is_exact: boolean;
}

/** More late keys are not looked up in the files of earlier generations: the interval is exported again. */
const maxLateKeys = 100_000;

/**
 * Finds persons that the source has in an interval and no file of its manifest has. Persons only leave an interval, because
 * each change moves them to a later one. So the keys that are left are read, and compared with those of the files. Buckets
 * that were complete when they were compared before are not read again.
 */
export async function findLatePersons(
  dependencies: DifferenceDependencies,
  { run, interval }: { readonly run: ExistingRun; readonly interval: IntervalComparison },
  { published, now }: { readonly published: Fingerprint; readonly now: Fingerprint },
  signal: AbortSignal,
): Promise<LatePersons> {
  const { examined } = interval;
  const buckets =
    examined && areComparable(examined, now)
      ? differingBuckets(examined, now).filter(({ other }) => other !== null)
      : bucketsOf(now);
  const indexes = buckets.map(({ index }) => index);
  if (indexes.length === 0) return { added_rows: 0, is_exact: true };
  const byCount = { added_rows: countFewerRows(now, published), is_exact: false };
  const { source, readSelection } = dependencies;
  const selection = await readSelection(interval);
  const rows = { model: run.spec.model, team_id: interval.team_id, selection };
  if (interval.bucket_rows > maxMergedRows || !filesHaveKeys(rows)) return byCount;
  const ranges = bucketIntervals(intervalOf(run.spec), now, indexes);
  async function* sourceKeys(): AsyncGenerator<RowKey> {
    for (const range of ranges) yield* source.keys({ ...rows, interval: range }, signal);
  }
  const compared = await withExportedKeys(
    dependencies,
    { run, interval },
    { ranges, signal },
    async (files, location) => {
      const late = new Set<string>();
      for await (const key of keysNotPublished(sourceKeys(), files)) {
        late.add(stateText(key));
        if (late.size > maxLateKeys) break;
      }
      if (late.size > 0 && late.size <= maxLateKeys)
        for await (const key of readEarlierKeys(run, { location, signal })) late.delete(stateText(key));
      return { added_rows: late.size, is_exact: true };
    },
  );
  return compared ?? byCount;
}

/** A state of a distinct id as text. */
const stateText = ({ inserted_at, id, version }: RowKey): string =>
  JSON.stringify([inserted_at, id, version]);
