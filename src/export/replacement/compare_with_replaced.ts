import {
  areComparable,
  bucketInterval,
  rowsOfFingerprint,
  type Fingerprint,
} from '../../domain/fingerprint.ts';
import type { DataInterval } from '../../domain/intervals.ts';
import type { ReplacedRun } from '../../domain/replaced_generation.ts';
import {
  bucketsToCompare,
  countFewerRows,
  withBuckets,
  type ReplacementCheck,
} from '../../domain/replacement.ts';
import { exportedFingerprint, type ExistingRun, type SortKey } from '../../domain/run.ts';
import { filesHaveKeys } from '../../source/keys.ts';
import { allRows } from '../../source/row_selection.ts';
import type { RowRange } from '../../source/source.ts';
import type { ExportDependencies } from '../export_dependencies.ts';
import { formatInterval, intervalOf, rowRangeOf } from '../row_range.ts';
import { createBucketSums, mergeKeys } from './compare_keys.ts';
import { areKeysUnreadable, KeysUnreadable, readHeldKeys } from './held_keys.ts';

/** Dependencies of a comparison. */
export type ReplacementDependencies = Pick<
  ExportDependencies,
  'recorder' | 'source' | 'readSelection' | 'openLocation' | 'mayShrink'
>;

/** A run, and the run whose manifest it would replace. */
export interface ReplacementContext {
  readonly dependencies: ReplacementDependencies;
  readonly runId: string;
  readonly run: ExistingRun;
  readonly replaced: ReplacedRun;
  /** Reported with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/** What a comparison found, without what identifies it. */
export type Compared = Omit<ReplacementCheck, 'replaced' | 'generation'>;

/**
 * Compares the current rows of the source with the manifest that a run would replace, under the selection and model of
 * that manifest: a new selection is the owner's choice and takes nothing away. Buckets with the same rows need nothing.
 * Of the others the keys are compared: equal counts do not show that one row was deleted and another one came.
 */
export async function compareWithReplaced(context: ReplacementContext): Promise<Compared> {
  const { dependencies, run, replaced, signal } = context;
  const { source, readSelection, mayShrink } = dependencies;
  const range = rowRangeOf(replaced.run.spec, await readSelection(replaced.run.spec));
  const exported = exportedFingerprint(replaced.run);
  const now = await source.fingerprint(range, signal);
  // Where persons decide which rows are selected, all events of the project are compared. See `Fingerprint.all_events`.
  const held = now.all_events ? (replaced.run.finished?.fingerprint ?? exported) : exported;
  const found = (outcome: ReplacementCheck['outcome'], missing_rows = 0): Compared => ({
    outcome,
    missing_rows,
    bucket_rows: rowsOfFingerprint(exported),
    source_rows: rowsOfFingerprint(now),
    source: outcome === 'same_rows' || outcome === 'every_row_present' ? now : null,
  });
  const differing = areComparable(held, now) ? bucketsToCompare(held, now) : null;
  if (differing?.length === 0) return found(now.all_events ? 'not_comparable' : 'same_rows');
  if (await mayShrink(run.spec)) return found('shrink_allowed');
  // The persons of an interval move to later ones by nature.
  if (range.model === 'persons') return found('not_comparable');
  const keys = differing && (await compareKeys(context, range, now, differing));
  if (!keys) {
    const fewer = differing
      ? countFewerRows(held, now)
      : Math.max(0, rowsOfFingerprint(held) - rowsOfFingerprint(now));
    return found(fewer > 0 ? 'rows_missing' : 'not_comparable', fewer);
  }
  if (keys.missing > 0) return found('rows_missing', keys.missing);
  // The rows are there, but which of them are selected may change before they are read.
  if (now.all_events) return found('not_comparable');
  return { ...found('every_row_present'), source: keys.source };
}

/**
 * Merges the keys of the differing buckets of the files and of the source. Null when keys cannot be read.
 * @returns the number of missing keys, and the rows of the source with the keys that were merged
 */
async function compareKeys(
  context: ReplacementContext,
  range: RowRange,
  now: Fingerprint,
  differing: readonly number[],
): Promise<{ readonly missing: number; readonly source: Fingerprint } | null> {
  const { dependencies, runId, run, replaced, progress, signal } = context;
  const { recorder, source, openLocation } = dependencies;
  const log = (message: string): Promise<void> => recorder.log(run, runId, 'WARNING', message);
  const interval = intervalOf(run.spec);
  const ranges = joinAdjacent(differing.map((index) => bucketInterval(interval, now, index)));
  const selection = now.all_events ? allRows : range.selection;
  const sums = createBucketSums(interval.start, now.width_ms);
  const onRow = (): void => {
    progress.rows += 1;
  };
  const onKey = (key: SortKey): void => {
    onRow();
    sums.add(key);
  };
  async function* sourceKeys(): AsyncGenerator<SortKey> {
    for (const part of ranges) yield* source.keys({ ...range, selection, interval: part }, signal);
  }
  try {
    if (!filesHaveKeys(range.selection))
      throw new KeysUnreadable('the query of the batch export does not select uuid and _inserted_at');
    const location = await openLocation({
      batch_export_id: replaced.run.spec.batch_export_id,
      config_version: replaced.run.spec.config_version,
      newest_config_version: run.spec.config_version,
    });
    try {
      const held = readHeldKeys(replaced.run, await recorder.readReplacedFiles(replaced), {
        location,
        ranges,
        onRow,
        onAbsent: (key) =>
          log(
            `${location.nameOf(key)} of generation ${replaced.run.generation} no longer exists. Its rows cannot be kept.`,
          ),
        signal,
      });
      const missing = await mergeKeys(held, sourceKeys(), onKey);
      return { missing, source: withBuckets(now, sums.bucketsAt(differing)) };
    } finally {
      location.close();
    }
  } catch (error) {
    if (!areKeysUnreadable(error)) throw error;
    await log(
      `The rows of generation ${replaced.run.generation} of ${formatInterval(run)} cannot be compared with the source by key: ` +
        `${error.message} Only their numbers are compared.`,
    );
    return null;
  }
}

/** Joins ranges of which one starts where the previous one ends. */
function joinAdjacent(ranges: readonly DataInterval[]): DataInterval[] {
  const joined: DataInterval[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last?.end === range.start) joined[joined.length - 1] = { start: last.start, end: range.end };
    else joined.push(range);
  }
  return joined;
}
