import {
  readObsoleteObjects,
  recordDeletions,
  recordFailedDeletions,
  type Deletion,
  type FailedDeletion,
  type ObsoleteObject,
} from '../decisions/obsolete_objects.ts';
import { isTransient } from '../journal/database_errors.ts';
import { DestinationError } from '../destination/destination.ts';
import { deleteObsoleteObject, isLocationError, isStillReferenced } from './delete_obsolete_object.ts';
import { logDeletions } from './deletion_log.ts';
import { createLocationCache, type LocationCache } from './location_cache.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';
import { createManifestReader } from './manifest_reader.ts';

/** The result of a clean-up, which is stored in the workflow's history. */
export interface CleanUpOutcome {
  readonly deleted: number;
  /** Objects that stay permanently. */
  readonly kept: number;
  /** Whether more objects can be deleted at once. */
  readonly has_more: boolean;
}

/** Objects of each location in one call. */
const batchSize = 500;
/** After this time a call starts no further interval, so that other exports get their turn. */
const turnMs = 45_000;
/** Total wait for servers in one call; shorter than the activity's timeout. */
const timeoutMs = 100_000;

/**
 * Deletes an export's obsolete objects, interval by interval.
 * @throws the first transient error, after all other objects were tried and the deletions recorded
 */
export async function cleanUpExport(
  { journal, policies, openLocation }: Pick<MaintenanceDependencies, 'journal' | 'policies' | 'openLocation'>,
  batchExportId: string,
  cancelled: AbortSignal,
): Promise<CleanUpOutcome> {
  const objects = await readObsoleteObjects(journal.pool, policies.maintenance, batchExportId, batchSize);
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(timeoutError()), timeoutMs);
  const turnEnd = performance.now() + turnMs;
  const locations = createLocationCache(openLocation);
  const cleanUp: CleanUp = {
    locations,
    retryBudgetMs: policies.maintenance.orphanRetryBudgetMs,
    signal: AbortSignal.any([cancelled, timeout.signal]),
    failingConfigs: new Set(),
    workingConfigs: new Set(),
    errors: [],
    unrecordedFailures: [],
  };
  const deletions: Deletion[] = [];
  let remaining = objects.length;
  try {
    for (const ofInterval of groupByInterval(objects)) {
      if (performance.now() > turnEnd || cleanUp.signal.aborted) break;
      const done = await cleanUpInterval(cleanUp, ofInterval);
      remaining -= ofInterval.length;
      await recordFailedDeletions(journal, cleanUp.unrecordedFailures.splice(0));
      for (const ofRun of groupByRun(done))
        try {
          await recordDeletions(journal, ofRun);
          deletions.push(...ofRun);
        } catch (error) {
          // A run whose state cannot be read keeps no other from its clean-up.
          if (isTransient(error)) throw error;
          cleanUp.errors.push(error);
        }
    }
    await logDeletions(journal.pool, locations, deletions);
  } finally {
    clearTimeout(timer);
    await locations.close();
  }
  if (cleanUp.errors.length > 0) throw cleanUp.errors[0];
  const kept = deletions.filter(({ deleted }) => !deleted).length;
  return {
    deleted: deletions.length - kept,
    kept,
    has_more: remaining > 0 || [...groupByConfig(objects)].some(({ length }) => length === batchSize),
  };
}

/** State of one call. */
interface CleanUp {
  readonly locations: LocationCache;
  readonly retryBudgetMs: number;
  readonly signal: AbortSignal;
  /** Config versions whose location failed: this call skips their remaining objects. */
  readonly failingConfigs: Set<number>;
  /** Config versions at whose location a deletion succeeded: its earlier failures are over. */
  readonly workingConfigs: Set<number>;
  readonly errors: unknown[];
  readonly unrecordedFailures: FailedDeletion[];
}

async function cleanUpInterval(cleanUp: CleanUp, objects: readonly ObsoleteObject[]): Promise<Deletion[]> {
  const { locations, retryBudgetMs, signal, failingConfigs, workingConfigs, errors } = cleanUp;
  const isAborted = (): boolean => signal.aborted;
  const manifests = createManifestReader(locations, signal);
  const deletions: Deletion[] = [];
  for (const read of objects) {
    const { config_version } = read;
    const object = workingConfigs.has(config_version) ? { ...read, location_failing_for_ms: null } : read;
    if (isAborted()) break;
    if (failingConfigs.has(config_version)) continue;
    try {
      const open = async () => ({ location: await locations.of(object, config_version), manifests, signal });
      const deletion = await deleteObsoleteObject(object, open, retryBudgetMs, signal);
      deletions.push(deletion);
      if (deletion.deleted) workingConfigs.add(config_version);
    } catch (error) {
      errors.push(error);
      const locationWide = !isStillReferenced(error);
      if (locationWide) failingConfigs.add(config_version);
      if (isLocationError(error) && !isAborted())
        cleanUp.unrecordedFailures.push({ object, locationWide, reason: error.message });
    }
  }
  return deletions;
}

const groupByInterval = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, (object) => `${object.data_interval_start}/${object.data_interval_end}`).values();

const groupByRun = (deletions: readonly Deletion[]): Iterable<readonly Deletion[]> =>
  Map.groupBy(deletions, ({ object }) => object.run_id).values();

const groupByConfig = (objects: readonly ObsoleteObject[]): Iterable<readonly ObsoleteObject[]> =>
  Map.groupBy(objects, ({ config_version }) => config_version).values();

const timeoutError = (): DestinationError =>
  new DestinationError(
    'S3Unreachable',
    'The S3 server responded too slowly to delete obsolete objects in time.',
    { transient: true },
  );
