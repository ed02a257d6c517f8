import { findComparison } from '../decisions/comparisons.ts';
import { type Difference, differenceJob } from '../decisions/difference_job.ts';
import { rowsToCompare } from '../domain/comparison.ts';
import { type DecidedDifference, netMissingRows } from '../domain/difference.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { withBuckets, rowsOfFingerprint } from '../domain/fingerprint.ts';
import { encodeHashes, maxKnownRows } from '../domain/kept_rows.ts';
import { runDecider } from '../domain/run.ts';
import { createBucketSums, createRowHasher } from '../export/exported_keys.ts';
import { intervalOf } from '../export/run_interval.ts';
import { handlerOf, type JobHandler } from '../jobs/jobs.ts';
import { readState } from '../journal/journal.ts';
import { readSource } from './compare_intervals.ts';
import { type DifferenceDependencies, findDifferingKeys } from './differing_keys.ts';

/** The rows of an answer. */
const maxRows = 100;

/** The difference of an interval, and what a decision about it stores. */
interface FoundDifference extends Pick<DecidedDifference, 'missing' | 'missing_hashes'> {
  readonly difference: Difference;
}

const unknownRows: Difference = { missing_rows: 0, is_exact: false, rows: [], last_inserted_at: null };
const notComparable: FoundDifference = { difference: unknownRows, missing: null, missing_hashes: null };

export const createDifferenceHandler = (dependencies: DifferenceDependencies): JobHandler =>
  handlerOf(differenceJob, async ({ parameters: { run_id } }, signal) => {
    const { difference } = await findDifference(dependencies, run_id, signal);
    return difference;
  });

/**
 * Compares the files of a run, the newest ones of their interval, with the source by key, whatever was kept.
 * @throws CommandRejected when they no longer are
 */
export async function findDifference(
  dependencies: DifferenceDependencies,
  run_id: string,
  signal: AbortSignal,
): Promise<FoundDifference> {
  const { journal } = dependencies;
  const compared = await findComparison(journal.pool, run_id);
  if (!compared)
    throw new CommandRejected(
      'conflict',
      'The files of the interval are no longer those that were compared.',
    );
  const interval = { ...compared, kept_rows: null };
  const run = await readState(journal, runDecider, run_id);
  if (run.status === 'Absent' || interval.model === 'persons') return notComparable;
  const [now] = await readSource(dependencies, [interval], signal);
  const published = now && rowsToCompare(run, now);
  if (!published) return notComparable;
  const { start } = intervalOf(run.spec);
  const sums = createBucketSums(start, now.width_ms);
  const hashOf = createRowHasher(start, now.width_ms);
  const hashes: bigint[] = [];
  const rows: SortKey[] = [];
  let last: SortKey | undefined;
  const onMissing = ({ inserted_at, id }: SortKey): void => {
    last = { inserted_at, id };
    sums.add(last);
    if (hashes.length <= maxKnownRows) hashes.push(hashOf(last).hash);
    if (rows.length < maxRows) rows.push(last);
  };
  const keys = await findDifferingKeys(
    dependencies,
    { run, interval },
    { published, now },
    { signal, onMissing },
  );
  if (!keys) {
    const missing = netMissingRows(published, now);
    const missing_rows = missing ? rowsOfFingerprint(missing) : 0;
    return { difference: { ...unknownRows, missing_rows }, missing, missing_hashes: null };
  }
  const { missing_rows } = keys;
  return {
    difference: { missing_rows, is_exact: true, rows, last_inserted_at: last?.inserted_at ?? null },
    missing: withBuckets({ ...now, encoded_buckets: '' }, sums.bucketsAt()),
    missing_hashes: encodeHashes(hashes),
  };
}
