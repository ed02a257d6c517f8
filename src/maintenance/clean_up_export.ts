import {
  readObsoleteObjects,
  recordFailedDeletions,
  recordDeletions,
  type FailedDeletion,
  type ObsoleteObject,
  type Deletion,
} from '../decisions/obsolete_objects.ts';
import { DestinationError } from '../destination/destination.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';
import { logDeletions } from './deletion_log.ts';
import { createManifestReader, createLocationCache, type LocationCache } from './location_cache.ts';
import { isLocationError, isStillReferenced, deleteObsoleteObject } from './delete_obsolete_object.ts';

/** What of a cleaning up travels through a history. */
export interface CleanUpOutcome {
  readonly removed: number;
  /** Objects that stay for good. */
  readonly kept: number;
  /** Whether there is more to remove at once. */
  readonly more: boolean;
}

/** Objects of each place in one call, and the time after which it begins no further interval: other exports wait for their turn. */
const objectsAtOnce = 500;
const turnMs = 45_000;
/** The longest that a server is waited for altogether; below the time-out of the activity. */
const longestMs = 100_000;

/**
 * Removes an export's objects that nobody needs any more, interval by interval.
 * @throws the first fault that may pass, after everything else was tried; what was removed is recorded by then.
 */
export async function cleanUpExport(
  { journal, policies, openLocation }: Pick<MaintenanceDependencies, 'journal' | 'policies' | 'openLocation'>,
  batchExportId: string,
  cancelled: AbortSignal,
): Promise<CleanUpOutcome> {
  const objects = await readObsoleteObjects(journal.pool, policies.maintenance, batchExportId, objectsAtOnce);
  const tooLong = new AbortController();
  const timer = setTimeout(() => tooLong.abort(tookTooLong()), longestMs);
  const turnEnd = performance.now() + turnMs;
  const places = createLocationCache(openLocation);
  const work: CleanUp = {
    places,
    giveUpAfterMs: policies.maintenance.orphanRetryBudgetMs,
    signal: AbortSignal.any([cancelled, tooLong.signal]),
    broken: new Set(),
    answered: new Set(),
    faults: [],
    failures: [],
  };
  const removals: Deletion[] = [];
  let left = objects.length;
  try {
    for (const ofInterval of intervalsOf(objects)) {
      if (performance.now() > turnEnd || work.signal.aborted) break;
      const done = await cleanUpInterval(work, ofInterval);
      await recordDeletions(journal, done);
      await recordFailedDeletions(journal, work.failures.splice(0));
      removals.push(...done);
      left -= ofInterval.length;
    }
    await logDeletions(journal.pool, places, removals);
  } finally {
    clearTimeout(timer);
    await places.close();
  }
  if (work.faults.length > 0) throw work.faults[0];
  const kept = removals.filter(({ deleted: removed }) => !removed).length;
  return {
    removed: removals.length - kept,
    kept,
    more: left > 0 || [...placesOf(objects)].some(({ length }) => length === objectsAtOnce),
  };
}

/** One call under way. */
interface CleanUp {
  readonly places: LocationCache;
  readonly giveUpAfterMs: number;
  readonly signal: AbortSignal;
  /** Configs whose place failed: nothing more is asked of it in this call. */
  readonly broken: Set<number>;
  /** Configs of whose place something was removed: what failed before has passed. */
  readonly answered: Set<number>;
  readonly faults: unknown[];
  /** Of those, the ones that are still to be recorded. */
  readonly failures: FailedDeletion[];
}

async function cleanUpInterval(work: CleanUp, objects: readonly ObsoleteObject[]): Promise<Deletion[]> {
  const { places, giveUpAfterMs, signal, broken, answered, faults, failures } = work;
  const isBrokenOff = (): boolean => signal.aborted;
  const manifests = createManifestReader(places, signal);
  const removals: Deletion[] = [];
  for (const read of objects) {
    const { config_version } = read;
    const object = answered.has(config_version) ? { ...read, place_failing_for_ms: null } : read;
    if (isBrokenOff()) break;
    if (broken.has(config_version)) continue;
    try {
      const open = async () => ({ destination: await places.of(object, config_version), manifests, signal });
      const removal = await deleteObsoleteObject(object, open, giveUpAfterMs, signal);
      removals.push(removal);
      if (removal.deleted) answered.add(config_version);
    } catch (error) {
      faults.push(error);
      const ofPlace = !isStillReferenced(error);
      if (ofPlace) broken.add(config_version);
      if (isLocationError(error) && !isBrokenOff())
        failures.push({ object, locationWide: ofPlace, reason: error.message });
    }
  }
  return removals;
}

const intervalsOf = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, (object) => `${object.data_interval_start}/${object.data_interval_end}`).values();

const placesOf = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, ({ config_version }) => config_version).values();

const tookTooLong = (): DestinationError =>
  new DestinationError('S3Unreachable', 'The S3 server took too long to answer.', { transient: true });
