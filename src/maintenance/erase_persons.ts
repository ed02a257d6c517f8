import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import { readStartableRun, type StartableRun } from '../decisions/create_run.ts';
import {
  type CollapsedRun,
  countAttempts,
  type ErasedInterval,
  type ErasureSearch,
  findOlderRun,
  forgetKeys,
  hasEnded,
  type PublishedInterval,
  purgeErasedIds,
  readCertificate,
  readIntervalsSince,
  readManifestConfigs,
  readObsoleteTables,
  readPublishedIntervals,
  readRemovedObjects,
  readRewritingRun,
  readSearches,
  readTouchedIntervals,
  recordErasure,
  recordSearch,
  startRewriting,
  type VerifiedInterval,
} from '../decisions/erasures.ts';
import {
  findGeneration,
  findReplacedRun,
  readAdoptedManifest,
  readReplacedFiles,
} from '../decisions/record_files.ts';
import { hashErasedId, type ReadErasedIds } from '../destination/erased_ids.ts';
import { parseManifest } from '../destination/manifest.ts';
import { isErrorType } from '../destination/objects.ts';
import type { Destination } from '../destination/open_destination.ts';
import { eventPartitionOf } from '../destination/keys.ts';
import { erasureDecider, type HeldObject } from '../domain/erasure.ts';
import { addFiles, adoptedFiles, type CompletedFile, totalsOf } from '../domain/exported_files.ts';
import { addFingerprints } from '../domain/fingerprint.ts';
import { adoptedRun, type ReplacedRun } from '../domain/replaced_generation.ts';
import type { RunSpec } from '../domain/run_state.ts';
import { readOtherBuckets, searchEarlierFiles, stayingFiles } from '../export/erase_interval.ts';
import { openPublishedRows } from '../export/published_rows.ts';
import { classifyError } from '../failures/classify_error.ts';
import type { Pool } from '../journal/database.ts';
import { readState } from '../journal/journal.ts';
import { filesHavePersons } from '../source/read_ranges.ts';
import { openDeltaTable } from '../tables/delta_table.ts';
import { FileUnreadable } from '../verify/row.ts';
import { cleanUpExport } from './clean_up_export.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** Dependencies of erasures. */
export interface ErasureDependencies extends MaintenanceDependencies {
  readonly readErasedIds: ReadErasedIds;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly runs: {
    /** Starts the execution of a run, unless it runs. */
    start(run: StartableRun): Promise<boolean>;
  };
}

/** What the workflow of an erasure does next. */
export interface ErasureStep {
  readonly ended: boolean;
  /** Milliseconds until the next step. */
  readonly wait_ms: number;
  /** For the Temporal UI. */
  readonly details: string;
}

interface Erasure {
  readonly dependencies: ErasureDependencies;
  readonly id: string;
  readonly team_id: number;
  readonly requested_at: string;
  readonly erased: ReadonlySet<string>;
  /** Reported with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
  /** How many more runs may be started. */
  free: number;
}

/** Runs of an erasure at the same time. */
const maxRewriting = 8;
/** How often an interval is tried. */
const maxAttempts = 3;
/** After this time a step starts no further search, so that the workflow shows its progress. */
const turnMs = 20_000;
const pollMs = 500;

/**
 * Does the next part of an erasure. It can be stopped anywhere and repeated: what it has done is in the journal, and what it has
 * searched beside it. In order: it waits for runs that may have read rows before the request, searches the files of every manifest
 * of the project, has those rewritten that hold rows of the persons, deletes what no manifest needs, and certifies it.
 */
export async function advanceErasure(
  dependencies: ErasureDependencies,
  id: string,
  { progress, signal }: Pick<Erasure, 'progress' | 'signal'>,
): Promise<ErasureStep> {
  const { journal, readErasedIds } = dependencies;
  const { pool } = journal;
  const state = await readState(journal, erasureDecider, id);
  if (state.status !== 'Running') return { ended: true, wait_ms: 0, details: state.status };
  const { team_id, requested_at } = state;
  const older = await findOlderRun(pool, id, team_id, requested_at);
  if (older) return waits(`Waiting for run ${older.id}, which started before the request`, 4 * pollMs);
  const erased = new Set(await readErasedIds({ team_id, erasure_id: id }));
  const free = maxRewriting - state.rewriting.length;
  const erasure: Erasure = { dependencies, id, team_id, requested_at, erased, progress, signal, free };
  for (const { run_id, ...interval } of state.rewriting) await followRun(erasure, interval, run_id);
  const turnEnd = performance.now() + turnMs;
  for (const search of await readSearches(pool, id, team_id))
    if (!(await searchExport(erasure, search, turnEnd)))
      return waits(`Searching batch export ${search.batch_export_id}`, pollMs);
  const searched = await readState(journal, erasureDecider, id);
  if (searched.status !== 'Running' || searched.rewriting.length > 0)
    return waits('Waiting for the new files', pollMs);
  for (const { batch_export_id } of await readSearches(pool, id, team_id))
    if (!searched.cleaned.includes(batch_export_id)) await removeObjects(erasure, batch_export_id);
  await certify(erasure);
  return { ended: true, wait_ms: 0, details: 'Ended' };
}

const waits = (details: string, wait_ms: number): ErasureStep => ({ ended: false, wait_ms, details });

/** Starts a run that has no execution yet, and records one that has ended. One that failed is tried again. */
async function followRun(erasure: Erasure, interval: ErasedInterval, runId: string): Promise<void> {
  const { dependencies, id } = erasure;
  const { journal, runs } = dependencies;
  const run = await readRewritingRun(journal.pool, runId);
  if (!run) return;
  if (!hasEnded(run)) {
    const startable = run.status === 'Starting' && (await readStartableRun(journal.pool, run.run_id));
    if (startable) await runs.start(startable);
    return;
  }
  erasure.free += 1;
  const end = (error: string | null): Promise<void> =>
    recordErasure(journal, id, `ended:${runId}`, {
      type: 'ErasureIntervalEnded',
      data: { ...interval, run_id: runId, error },
    });
  if (run.status === 'Completed') return end(null);
  if ((await countAttempts(journal.pool, id, interval)) >= maxAttempts)
    return end(run.latest_error ?? `The run ended ${run.status}.`);
  const outcome = await searchInterval(erasure, { ...interval, collapsed: null });
  if (outcome.state === 'clean') return end(null);
  if (outcome.state === 'failed') return end(outcome.error);
}

/** @returns whether all manifests are searched, also those that others have published since */
async function searchExport(
  erasure: Erasure,
  { batch_export_id, searched_until, searched_at }: ErasureSearch & { readonly batch_export_id: string },
  turnEnd: number,
): Promise<boolean> {
  const { dependencies, id } = erasure;
  const { pool } = dependencies.journal;
  if (searched_until !== 'infinity') {
    const page = await readPublishedIntervals(pool, batch_export_id, searched_until);
    // Intervals that start at the same time are recorded together.
    for (const [start, intervals] of Map.groupBy(page, (interval) => interval.start)) {
      if (performance.now() > turnEnd) return false;
      const totals = await searchAll(erasure, batch_export_id, intervals);
      if (!totals) return false;
      await recordSearch(pool, id, batch_export_id, { until: start, ...totals });
    }
    if (page.length === 0)
      await recordSearch(pool, id, batch_export_id, {
        ...{ until: 'infinity', intervals: 0, files: 0, rows: 0, bytes: 0 },
      });
    return false;
  }
  const { rows } = await pool.query<{ now: string }>('select clock_timestamp()::text as now');
  const since = await readIntervalsSince(pool, id, batch_export_id, searched_at);
  if (since.length === 0) return true;
  const totals = await searchAll(erasure, batch_export_id, since);
  if (totals)
    await recordSearch(pool, id, batch_export_id, { ...totals, ...(rows[0] && { at: rows[0].now }) });
  return false;
}

interface SearchTotals {
  readonly intervals: number;
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Searches intervals one after the other; null when one has to wait. */
async function searchAll(
  erasure: Erasure,
  batch_export_id: string,
  intervals: readonly PublishedInterval[],
): Promise<SearchTotals | null> {
  const totals = { intervals: 0, files: 0, rows: 0, bytes: 0 };
  for (const { start, end, collapsed } of intervals) {
    if (erasure.free <= 0) return null;
    const interval = { batch_export_id, start, end };
    const outcome = await searchInterval(erasure, { ...interval, collapsed });
    if (outcome.state === 'busy') return null;
    if (outcome.state === 'failed')
      await recordErasure(
        erasure.dependencies.journal,
        erasure.id,
        `unsearched:${batch_export_id}/${start}/${end}`,
        {
          type: 'ErasureIntervalEnded',
          data: { ...interval, run_id: null, error: outcome.error },
        },
      );
    totals.intervals += 1;
    if (outcome.state === 'failed') continue;
    totals.files += outcome.files;
    totals.rows += outcome.rows;
    totals.bytes += outcome.bytes;
  }
  return totals;
}

/** `busy`: a run of the interval is active. `clean`: its files have no row of the persons. */
type SearchOutcome =
  | { readonly state: 'busy' }
  | { readonly state: 'failed'; readonly error: string }
  | ({ readonly state: 'clean' | 'rewriting' } & Omit<SearchTotals, 'intervals'>);

/** Searches the files of a manifest, and starts the run that publishes them without the persons. */
async function searchInterval(
  erasure: Erasure,
  { collapsed, ...interval }: ErasedInterval & Pick<PublishedInterval, 'collapsed'>,
): Promise<SearchOutcome> {
  const { dependencies, id } = erasure;
  const { journal, runs } = dependencies;
  const { batch_export_id, start, end } = interval;
  try {
    const spec = { batch_export_id, data_interval_start: start, data_interval_end: end };
    const known = await findReplacedRun(journal, spec);
    const adopted =
      known || !collapsed ? null : await readCollapsedManifest(erasure, { ...spec, ...collapsed });
    const replaced = known ?? adopted?.replaced;
    if (!replaced) throw new FileUnreadable('the journal does not know what is published of the interval');
    const published = adopted ? adoptedFiles(adopted.facts) : await readReplacedFiles(journal.pool, replaced);
    const found = await searchManifest(erasure, replaced, published);
    const { files, rows, bytes } = found;
    if (found.erased_rows === 0) return { state: 'clean', files, rows, bytes };
    const { erased_rows, erased, events } = found;
    const runId = await startRewriting(journal, id, interval, {
      ...{ replaced, erased_rows, erased, events },
      collapsed: adopted?.facts ?? null,
    });
    if (runId === null) return { state: 'busy' };
    erasure.free -= 1;
    const run = await readStartableRun(journal.pool, runId);
    if (run) await runs.start(run);
    return { state: 'rewriting', files, rows, bytes };
  } catch (error) {
    const { type, message, permanent } = classifyError(error);
    if (!permanent) throw error;
    return { state: 'failed', error: `${type}: ${message}` };
  }
}

/** Reads the manifest of an interval whose history was collapsed. @throws FileUnreadable, DestinationError */
async function readCollapsedManifest(
  { dependencies, signal }: Erasure,
  collapsed: Pick<RunSpec, 'batch_export_id' | 'data_interval_start' | 'data_interval_end'> & CollapsedRun,
) {
  const { journal, openLocation } = dependencies;
  const { run_id, ...interval } = collapsed;
  const spec = {
    ...interval,
    ...{ backfill_id: null, retry_number: 0, allow_shrink: true, continues_run_id: null },
  };
  const location = await openLocation(spec);
  try {
    const found = await location.getManifest(location.manifestKey(spec), signal);
    const manifest = found.state === 'present' ? parseManifest(found.text) : undefined;
    if (manifest?.run_id !== run_id)
      throw new FileUnreadable(
        'the history of the interval was collapsed, and the bucket does not have its manifest',
      );
    const facts = await readAdoptedManifest(journal.pool, spec, manifest);
    const files = addFiles(...adoptedFiles(facts).map(totalsOf));
    return { facts, replaced: adoptedRun({ ...facts, files, raised_to: facts.generation }, spec, run_id) };
  } finally {
    location.close();
  }
}

/** Searches the files that a manifest names, also those of earlier generations. @throws FileUnreadable, DestinationError */
async function searchManifest(erasure: Erasure, replaced: ReplacedRun, files: readonly CompletedFile[]) {
  const { dependencies, erased, progress, signal } = erasure;
  const { journal, source, readSelection, openLocation } = dependencies;
  const { spec, rejected_file } = replaced.run;
  const selection = await readSelection(spec);
  if (!filesHavePersons(spec.model, selection))
    throw new FileUnreadable(
      'the files do not name the persons of their rows: the query selects no distinct_id, or no key',
    );
  const location = await openLocation(spec);
  const onRow = (): void => {
    progress.rows += 1;
  };
  try {
    const columns = source.columns(spec.model, selection);
    const rows = openPublishedRows({ spec, files, rejected_file, location, columns }, erased);
    const found = await rows.search(signal, onRow);
    const dependenciesOfEarlier = {
      ...{ source, readSelection, openLocation },
      findGeneration: (generation: number) => findGeneration(journal.pool, spec, generation),
    };
    const here = { place: spec, files: stayingFiles(replaced.run) };
    const buckets = [here, ...(await readOtherBuckets(dependenciesOfEarlier, replaced.run, signal))];
    let rowsOfEarlier = 0;
    for (const bucket of buckets)
      rowsOfEarlier += await searchEarlierFiles(
        dependenciesOfEarlier,
        { ...bucket, erased },
        { signal, onRow },
      );
    const earlier = buckets.flatMap((bucket) => bucket.files.map(({ file }) => file));
    const all = [...files, ...(rejected_file ? [rejected_file] : []), ...earlier];
    const events = location.partitionColumns.includes('event') ? eventsOf(files) : null;
    return {
      ...{
        events,
        files: all.length,
        rows: found.rows,
        bytes: all.reduce((sum, file) => sum + file.bytes, 0),
      },
      ...{ erased_rows: found.erased_rows + rowsOfEarlier },
      ...{ erased: addFingerprints(found.erased, found.rejected_erased) },
    };
  } finally {
    location.close();
  }
}

/** The partitions of events that files are in. @throws FileUnreadable for a file without one */
const eventsOf = (files: readonly CompletedFile[]): readonly string[] => [
  ...new Set(
    files.map(({ key }) => {
      const event = eventPartitionOf(key);
      if (event === undefined)
        throw new FileUnreadable(`${key} is in no partition of an event, and those of its export are`);
      return event;
    }),
  ),
];

/** Deletes at once what no manifest of an export needs: an older generation may have rows of the persons. */
async function removeObjects(erasure: Erasure, batch_export_id: string): Promise<void> {
  const { dependencies, id } = erasure;
  const { journal } = dependencies;
  const errors = await removeObsolete(erasure, batch_export_id);
  const former = await removeFormerManifests(erasure, batch_export_id);
  const { held, removed, left } = await readRemovedObjects(journal.pool, id, batch_export_id);
  errors.push(...former.errors);
  if (left > 0) errors.push(`${left} objects that nothing needs could not be deleted yet.`);
  await recordErasure(journal, id, `removed:${batch_export_id}`, {
    type: 'ErasureObjectsRemoved',
    data: {
      ...{ batch_export_id, removed: removed + former.removed, held: [...held, ...former.held] },
      error: errors.length === 0 ? null : errors.join(' '),
    },
  });
}

/** @returns why something stays; @throws transient errors */
async function removeObsolete(erasure: Erasure, batch_export_id: string): Promise<string[]> {
  for (let attempts = 1; ; attempts += 1) {
    const faults = [
      await faultOf(() => forgetVersionsOfTables(erasure, batch_export_id)),
      await faultOf(() => cleanUpAtOnce(erasure, batch_export_id)),
    ].filter((fault) => fault !== null);
    // A run that commits to a table meanwhile makes a version that needs what it replaces.
    if (attempts === maxAttempts || !faults.some(({ type }) => type === 'StillReferenced'))
      return faults.map(({ type, message }) => `${type}: ${message}`);
  }
}

async function faultOf(
  work: () => Promise<void>,
): Promise<{ readonly type: string; readonly message: string } | null> {
  try {
    await work();
    return null;
  } catch (error) {
    const { type, message, permanent } = classifyError(error);
    if (!permanent && !isErrorType(error, 'StillReferenced')) throw error;
    return { type, message };
  }
}

/** Deletes the obsolete objects of an export, whatever their retention. @throws the first error, after all were tried */
async function cleanUpAtOnce({ dependencies, signal }: Erasure, batch_export_id: string): Promise<void> {
  const { journal, policies, openLocation } = dependencies;
  const maintenance = {
    ...policies.maintenance,
    oldGenerationRetentionMs: 0,
    tableFileRetentionMs: 0,
    orphanRetentionMs: 0,
  };
  const dependenciesNow = { journal, policies: { maintenance }, openLocation };
  while ((await cleanUpExport(dependenciesNow, batch_export_id, signal)).has_more);
}

/** Lets tables forget the versions that have files which no manifest needs: their readers could go back to these. */
async function forgetVersionsOfTables(
  { dependencies, signal }: Erasure,
  batch_export_id: string,
): Promise<void> {
  const { journal, openLocation } = dependencies;
  const forgotten = new Set<string>();
  for (const { config_version, model } of await readObsoleteTables(journal.pool, batch_export_id)) {
    const location = await openLocation({ batch_export_id, config_version });
    try {
      const store = location.table(model);
      if (!store || forgotten.has(store.location)) continue;
      await openDeltaTable(store).forgetOlder(signal);
      forgotten.add(store.location);
    } finally {
      location.close();
    }
  }
}

interface FormerManifests {
  readonly removed: number;
  readonly held: readonly HeldObject[];
  /** Why some were not searched. */
  readonly errors: readonly string[];
}

/**
 * Deletes the former versions of manifests of persons that have one of the ids: the first and the last key of a file are distinct
 * ids, and a versioned bucket keeps every manifest that was replaced.
 */
async function removeFormerManifests(erasure: Erasure, batch_export_id: string): Promise<FormerManifests> {
  const { dependencies, signal } = erasure;
  const { journal, openLocation } = dependencies;
  const searched = new Set<string>();
  const found: Omit<FormerManifests, 'errors'>[] = [];
  const errors: string[] = [];
  for (const config_version of await readManifestConfigs(journal.pool, batch_export_id))
    try {
      const location = await openLocation({ batch_export_id, config_version });
      const folder = location.manifestFolder(batch_export_id);
      const name = location.nameOf(folder);
      try {
        if (searched.has(name)) continue;
        searched.add(name);
        found.push(await removeFormerVersions(erasure, location, folder));
      } catch (error) {
        const { type, message, permanent } = classifyError(error);
        if (!permanent) throw error;
        // The manifests were deleted with their bucket.
        if (isErrorType(error, 'NoSuchBucket')) continue;
        if (await keepsNoVersions(journal.pool, batch_export_id, location, signal)) continue;
        errors.push(
          `Former versions of the manifests in ${name} were not searched, and the first and last key of a file of persons is a distinct id: s3:ListBucketVersions and s3:GetObjectVersion are needed. ${type}: ${message}`,
        );
      } finally {
        location.close();
      }
    } catch (error) {
      const { type, message, permanent } = classifyError(error);
      if (!permanent) throw error;
      errors.push(
        `Former versions of the manifests of config version ${config_version} were not searched. ${type}: ${message}`,
      );
    }
  return {
    removed: found.reduce((sum, { removed }) => sum + removed, 0),
    held: found.flatMap(({ held }) => held),
    errors,
  };
}

/** @throws FileUnreadable, DestinationError */
async function removeFormerVersions(
  { erased, signal }: Erasure,
  location: Destination,
  folder: string,
): Promise<Omit<FormerManifests, 'errors'>> {
  const ids = [...erased].map((id) => JSON.stringify(id));
  const held: HeldObject[] = [];
  let removed = 0;
  for await (const { key, version_id } of location.formerVersions(folder, signal)) {
    const found = await location.getManifest(key, signal, version_id);
    if (found.state === 'unreadable')
      throw new FileUnreadable(`version ${version_id} of ${location.nameOf(key)} may not be read`);
    if (found.state === 'absent' || !ids.some((id) => found.text.includes(id))) continue;
    const result = await location.deleteHeldVersion(key, version_id, signal);
    if (result === 'erased') removed += 1;
    else
      held.push({
        object: key,
        reason: `Version ${version_id} of the manifest, which was replaced, names one of the persons, and ${result === 'version_stays' ? 'may not be deleted: grant s3:DeleteObjectVersion, and lift its legal hold if it has one' : `object lock keeps it until ${result.locked_until}`}. Then ask for another erasure.`,
      });
  }
  return { held, removed };
}

/** Whether a manifest shows that its bucket has never kept versions: its versions may not be listed, or the store has no such request. */
async function keepsNoVersions(
  pool: Pool,
  batch_export_id: string,
  location: Destination,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { start, end } of (await readPublishedIntervals(pool, batch_export_id, null)).slice(0, 1)) {
    const spec = {
      batch_export_id,
      data_interval_start: start,
      data_interval_end: end,
      model: 'persons',
    } as const;
    const found = await location.getManifest(location.manifestKey(spec), signal);
    if (found.state === 'present') return found.version_id === undefined;
  }
  return false;
}

/** Verifies what was rewritten, forgets what the control database has of the persons, and ends the erasure. */
async function certify(erasure: Erasure): Promise<void> {
  const { dependencies, id, team_id, erased, signal } = erasure;
  const { journal } = dependencies;
  const verified = await verifyTouched(erasure, await readTouchedIntervals(journal.pool, id), signal);
  const state = await readState(journal, erasureDecider, id);
  // The keys of files that are as they were still tell where these end.
  const isWhole = state.status === 'Running' && state.faults === 0;
  const replacements = new Map([...erased].map((one) => [one, `erased ${hashErasedId(id, one)}`]));
  const keys = isWhole ? await forgetKeys(journal.pool, team_id, replacements) : 0;
  const forgotten = { ...(await purgeErasedIds(journal.pool, team_id)), keys };
  const findings = verified.reduce((sum, report) => sum + report.findings, 0);
  const hasFaults = !isWhole || findings > 0;
  const status = hasFaults ? 'Incomplete' : 'Completed';
  const certificate = await readCertificate(journal.pool, id, { status, verified, forgotten });
  await recordErasure(journal, id, 'ended', { type: 'ErasureEnded', data: { status, certificate } });
}

/** More intervals of an export are verified as one range. */
const maxVerifiedIntervals = 20;

/** Verifies the intervals that were rewritten, of each export. */
async function verifyTouched(
  { dependencies }: Erasure,
  touched: readonly ErasedInterval[],
  signal: AbortSignal,
): Promise<readonly VerifiedInterval[]> {
  const { journal, keyRing, settings, logger } = dependencies;
  const { verifyBatchExport } = await import('../verify/verify_batch_export.ts');
  const verified: VerifiedInterval[] = [];
  for (const [batch_export_id, intervals] of Map.groupBy(touched, (interval) => interval.batch_export_id)) {
    const [first] = intervals;
    const last = intervals.at(-1);
    if (!first || !last) continue;
    const ranges =
      intervals.length > maxVerifiedIntervals ? [{ start: first.start, end: last.end }] : intervals;
    for (const { start, end } of ranges) {
      const { totals, findings } = await verifyBatchExport(
        {
          ...{ pool: journal.pool, keyRing, settings, sourceUrl: settings.SOURCE_DATABASE_URL },
          onError: ({ type, message }) => {
            logger.warn({ batch_export_id, type }, `An erasure repeats a request. ${message}`);
          },
        },
        { batchExportId: batch_export_id, from: start, to: end, signal },
      );
      const { manifests, files, rows } = totals;
      verified.push({ batch_export_id, start, end, manifests, files, rows, findings: findings.length });
    }
  }
  return verified;
}
