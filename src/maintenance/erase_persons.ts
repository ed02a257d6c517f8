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
import { eventPartitionOf } from '../destination/partitions.ts';
import { erasureDecider } from '../domain/erasure.ts';
import { addFiles, adoptedFiles, type CompletedFile, totalsOf } from '../domain/exported_files.ts';
import { addFingerprints } from '../domain/fingerprint.ts';
import { adoptedRun, type ReplacedRun } from '../domain/replaced_generation.ts';
import type { RunSpec } from '../domain/run_state.ts';
import { openEarlierFile } from '../export/erase_interval.ts';
import { openPublishedRows } from '../export/published_rows.ts';
import { classifyError } from '../failures/classify_error.ts';
import { readState } from '../journal/journal.ts';
import { filesHavePersons } from '../source/read_ranges.ts';
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
  const { spec, rejected_file, earlier_generations } = replaced.run;
  if (earlier_generations.elsewhere.length > 0)
    throw new FileUnreadable(
      'files of earlier generations are in another bucket, and are not searched. Retry the run of the interval with {"allow_shrink": true}, which deletes them, and repeat the erasure',
    );
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
    const earlier = [...earlier_generations.earlier, ...earlier_generations.kept];
    let rowsOfEarlier = 0;
    for (const file of earlier) {
      const opened = await openEarlierFile(
        {
          ...{ source, readSelection, openLocation },
          findGeneration: (generation) => findGeneration(journal.pool, spec, generation),
        },
        { spec, file, erased },
        { signal, onRow },
      );
      opened?.location.close();
      rowsOfEarlier += opened?.counts.erased ?? 0;
    }
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
  const { dependencies, id, signal } = erasure;
  const { journal, policies, openLocation } = dependencies;
  const maintenance = {
    ...policies.maintenance,
    oldGenerationRetentionMs: 0,
    tableFileRetentionMs: 0,
    orphanRetentionMs: 0,
  };
  let error: string | null = null;
  try {
    let more = true;
    while (more) {
      const cleaned = await cleanUpExport(
        { journal, policies: { maintenance }, openLocation },
        batch_export_id,
        signal,
      );
      more = cleaned.has_more;
    }
  } catch (thrown) {
    const { type, message, permanent } = classifyError(thrown);
    if (!permanent) throw thrown;
    error = `${type}: ${message}`;
  }
  const { held, removed, left } = await readRemovedObjects(journal.pool, id, batch_export_id);
  if (left > 0) error ??= `${left} objects that nothing needs could not be deleted yet.`;
  await recordErasure(journal, id, `removed:${batch_export_id}`, {
    type: 'ErasureObjectsRemoved',
    data: { batch_export_id, removed, held, error },
  });
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
  const forgotten = {
    ...(await purgeErasedIds(journal.pool, team_id)),
    keys: isWhole ? await forgetKeys(journal.pool, team_id, replacements) : 0,
  };
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
