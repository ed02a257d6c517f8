import {
  type Deletion,
  type FailedDeletion,
  type ObsoleteObject,
  readObsoleteObjects,
  recordDeletions,
  recordFailedDeletions,
} from '../decisions/due_maintenance.ts';
import { DestinationError } from '../destination/destination.ts';
import { readConfigVersions } from '../destination/config_versions.ts';
import { isOwnKey } from '../destination/own_keys.ts';
import { isTransient, type Pool } from '../journal/database.ts';
import { type LogLevel, writeLogLine } from '../journal/journal.ts';
import type { FileKeeper } from '../export/publish_target.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';
import { isErrorType } from '../destination/errors.ts';
import {
  createLocationCache,
  createManifestReader,
  deleteObsoleteObject,
  type DeletionContext,
  isAboutObject,
  isLocationError,
  type LocationCache,
} from './delete_obsolete_object.ts';
import { dayMs } from '../domain/intervals.ts';

/** Writes to the export's log what was deleted, and what stays permanently: one line for each reason. */
async function logDeletions(
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

/** Writes to the export's log what was denied for the first time: one line for each reason. */
async function logDenials(
  pool: Pool,
  locations: LocationCache,
  denials: readonly FailedDeletion[],
  retryBudgetMs: number,
): Promise<void> {
  for (const [reason, ofReason] of Map.groupBy(denials, (denial) => denial.reason)) {
    const [{ object }] = ofReason as [FailedDeletion];
    await writeLogLine(pool, {
      team_id: object.team_id,
      batch_export_id: object.batch_export_id,
      run_id: null,
      level: 'WARNING',
      message: `Could not delete obsolete objects yet: ${countByKind(ofReason)}, such as ${await exampleOf(locations, ofReason)}. ${reason} Trying again for ${Math.ceil(retryBudgetMs / dayMs)} days.`,
    });
  }
}

const names = {
  upload: ['unfinished upload', 'unfinished uploads'],
  file: ['file', 'files'],
  manifest: ['manifest', 'manifests'],
} as const;

/** `2 files and 1 unfinished upload`. */
function countByKind(deletions: readonly Pick<Deletion, 'object'>[]): string {
  const byKind = Map.groupBy(deletions, ({ object }) => object.object_type);
  return [...byKind]
    .map(([kind, { length }]) => `${length} ${names[kind][length === 1 ? 0 : 1]}`)
    .join(' and ');
}

/** The full name of the first object, or its key when its location cannot be opened. */
async function exampleOf(
  locations: LocationCache,
  [first]: readonly Pick<Deletion, 'object'>[],
): Promise<string> {
  if (!first) return '';
  const { object } = first;
  const location = await locations.of(object, object.config_version).catch(() => undefined);
  return location?.nameOf(object.key) ?? object.key;
}

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
  {
    journal,
    policies,
    openLocation,
    keepers,
  }: Pick<MaintenanceDependencies, 'journal' | 'policies' | 'openLocation' | 'keepers'>,
  batchExportId: string,
  cancelled: AbortSignal,
): Promise<CleanUpOutcome> {
  const objects = await readObsoleteObjects(journal.pool, policies.maintenance, batchExportId, batchSize);
  const configs = (await readConfigVersions(journal.pool, batchExportId)).map(({ config }) => config);
  const timeout = new AbortController();
  const tooSlow = new DestinationError(
    'S3Unreachable',
    'The S3 server responded too slowly to delete obsolete objects in time.',
    { transient: true },
  );
  const timer = setTimeout(() => timeout.abort(tooSlow), timeoutMs);
  const turnEnd = performance.now() + turnMs;
  const locations = createLocationCache(openLocation);
  const cleanUp: CleanUp = {
    locations,
    isOwn: (object) => isOwnKey(configs, object, object.key),
    keepers: keepers.map((create) => create(AbortSignal.any([cancelled, timeout.signal]))),
    retryBudgetMs: policies.maintenance.orphanRetryBudgetMs,
    signal: AbortSignal.any([cancelled, timeout.signal]),
    failingConfigs: new Set(),
    workingConfigs: new Set(),
    errors: [],
    unrecordedFailures: [],
    denials: [],
  };
  const deletions: Deletion[] = [];
  let remaining = objects.length;
  try {
    const byInterval = Map.groupBy(
      objects,
      (object) => `${object.data_interval_start}/${object.data_interval_end}`,
    );
    for (const ofInterval of byInterval.values()) {
      if (performance.now() > turnEnd || cleanUp.signal.aborted) break;
      const done = await cleanUpInterval(cleanUp, ofInterval);
      remaining -= ofInterval.length;
      await recordFailedDeletions(journal, cleanUp.unrecordedFailures.splice(0));
      for (const ofRun of Map.groupBy(done, ({ object }) => object.run_id).values())
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
    await logDenials(journal.pool, locations, cleanUp.denials, cleanUp.retryBudgetMs);
  } finally {
    clearTimeout(timer);
    await locations.close();
  }
  if (cleanUp.errors.length > 0) throw cleanUp.errors[0];
  const kept = deletions.filter(({ deleted }) => !deleted).length;
  const byConfig = Map.groupBy(objects, ({ config_version }) => config_version);
  return {
    deleted: deletions.length - kept,
    kept,
    has_more: remaining > 0 || [...byConfig.values()].some(({ length }) => length === batchSize),
  };
}

/** State of one call. */
interface CleanUp {
  readonly locations: LocationCache;
  readonly isOwn: DeletionContext['isOwn'];
  readonly keepers: readonly FileKeeper[];
  readonly retryBudgetMs: number;
  readonly signal: AbortSignal;
  /** Config versions whose location failed: this call skips their remaining objects. */
  readonly failingConfigs: Set<number>;
  /** Config versions at whose location a deletion succeeded: its earlier failures are over. */
  readonly workingConfigs: Set<number>;
  readonly errors: unknown[];
  readonly unrecordedFailures: FailedDeletion[];
  /** What was denied for the first time. */
  readonly denials: FailedDeletion[];
}

async function cleanUpInterval(cleanUp: CleanUp, objects: readonly ObsoleteObject[]): Promise<Deletion[]> {
  const { locations, isOwn, keepers, retryBudgetMs, signal, failingConfigs, workingConfigs, errors } =
    cleanUp;
  const isAborted = (): boolean => signal.aborted;
  const manifests = createManifestReader(locations, signal);
  const deletions: Deletion[] = [];
  for (const read of objects) {
    const { config_version } = read;
    const object = workingConfigs.has(config_version) ? { ...read, location_failing_for_ms: null } : read;
    if (isAborted()) break;
    if (failingConfigs.has(config_version)) continue;
    try {
      const open = async () => ({
        location: await locations.of(object, config_version),
        isOwn,
        manifests,
        keepers,
        signal,
      });
      const deletion = await deleteObsoleteObject(object, open, retryBudgetMs, signal);
      deletions.push(deletion);
      if (deletion.deleted) workingConfigs.add(config_version);
    } catch (error) {
      errors.push(error);
      const locationWide = !isAboutObject(error);
      if (locationWide) failingConfigs.add(config_version);
      if (!isLocationError(error) || isAborted()) continue;
      const failure = { object, locationWide, reason: error.message };
      cleanUp.unrecordedFailures.push(failure);
      if (isErrorType(error, 'MissingPermission') && object.failing_for_ms === null)
        cleanUp.denials.push(failure);
    }
  }
  return deletions;
}
