import {
  readObsoleteObjects,
  recordFailedRemovals,
  recordRemovals,
  type FailedRemoval,
  type ObsoleteObject,
  type Removal,
} from '../src/decisions/upkeep_objects.ts';
import { DestinationFault } from '../src/destination/destination.ts';
import type { UpkeepDependencies } from './upkeep_dependencies.ts';
import { tellRemovals } from './upkeep_log.ts';
import { createManifestReader, keepPlacesOpen, type Places } from './upkeep_places.ts';
import { isOfPlace, isStillNamed, removeObject } from './upkeep_removal.ts';

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
  { journal, policies, openPlace }: Pick<UpkeepDependencies, 'journal' | 'policies' | 'openPlace'>,
  batchExportId: string,
  cancelled: AbortSignal,
): Promise<CleanUpOutcome> {
  const objects = await readObsoleteObjects(journal.pool, policies.upkeep, batchExportId, objectsAtOnce);
  const tooLong = new AbortController();
  const timer = setTimeout(() => tooLong.abort(tookTooLong()), longestMs);
  const turnEnd = performance.now() + turnMs;
  const places = keepPlacesOpen(openPlace);
  const work: CleanUp = {
    places,
    giveUpAfterMs: policies.upkeep.giveUpAfterMs,
    signal: AbortSignal.any([cancelled, tooLong.signal]),
    broken: new Set(),
    answered: new Set(),
    faults: [],
    failures: [],
  };
  const removals: Removal[] = [];
  let left = objects.length;
  try {
    for (const ofInterval of intervalsOf(objects)) {
      if (performance.now() > turnEnd || work.signal.aborted) break;
      const done = await cleanUpInterval(work, ofInterval);
      await recordRemovals(journal, done);
      await recordFailedRemovals(journal, work.failures.splice(0));
      removals.push(...done);
      left -= ofInterval.length;
    }
    await tellRemovals(journal.pool, places, removals);
  } finally {
    clearTimeout(timer);
    await places.close();
  }
  if (work.faults.length > 0) throw work.faults[0];
  const kept = removals.filter(({ removed }) => !removed).length;
  return {
    removed: removals.length - kept,
    kept,
    more: left > 0 || [...placesOf(objects)].some(({ length }) => length === objectsAtOnce),
  };
}

/** One call under way. */
interface CleanUp {
  readonly places: Places;
  readonly giveUpAfterMs: number;
  readonly signal: AbortSignal;
  /** Configs whose place failed: nothing more is asked of it in this call. */
  readonly broken: Set<number>;
  /** Configs of whose place something was removed: what failed before has passed. */
  readonly answered: Set<number>;
  readonly faults: unknown[];
  /** Of those, the ones that are still to be recorded. */
  readonly failures: FailedRemoval[];
}

async function cleanUpInterval(work: CleanUp, objects: readonly ObsoleteObject[]): Promise<Removal[]> {
  const { places, giveUpAfterMs, signal, broken, answered, faults, failures } = work;
  const isBrokenOff = (): boolean => signal.aborted;
  const manifests = createManifestReader(places, signal);
  const removals: Removal[] = [];
  for (const read of objects) {
    const { config_version } = read;
    const object = answered.has(config_version) ? { ...read, place_failing_for_ms: null } : read;
    if (isBrokenOff()) break;
    if (broken.has(config_version)) continue;
    try {
      const open = async () => ({ destination: await places.of(object, config_version), manifests, signal });
      const removal = await removeObject(object, open, giveUpAfterMs, signal);
      removals.push(removal);
      if (removal.removed) answered.add(config_version);
    } catch (error) {
      faults.push(error);
      const ofPlace = !isStillNamed(error);
      if (ofPlace) broken.add(config_version);
      if (isOfPlace(error) && !isBrokenOff()) failures.push({ object, ofPlace, reason: error.message });
    }
  }
  return removals;
}

const intervalsOf = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, (object) => `${object.data_interval_start}/${object.data_interval_end}`).values();

const placesOf = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, ({ config_version }) => config_version).values();

const tookTooLong = (): DestinationFault =>
  new DestinationFault('S3Unreachable', 'The S3 server took too long to answer.', { transient: true });
