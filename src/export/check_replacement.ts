/**
 * Compares the source with the manifest that a run would replace, so that no row leaves the bucket unnoticed: before the run
 * exports (`checkRun`), and before it publishes (`checkExportedRows`). Late rows are added to the manifest if the source
 * lacks others of its rows.
 */
import { bounds } from '../config/bounds.ts';
import type { ReadSelection } from '../destination/config_versions.ts';
import { DestinationError } from '../destination/destination.ts';
import { parseStoredManifest } from '../destination/stored_manifest.ts';
import {
  type BaseFiles,
  coversReplaced,
  type ReplacementCheck,
  type ReplacementOutcome,
  RowsMissingInSource,
} from '../domain/replacement_check.ts';
import {
  bucketsToCompare,
  containsPublishedRows,
  countFewerRows,
  withBuckets,
  areComparable,
  bucketIntervals,
  bucketsOf,
  type Fingerprint,
  haveSameRows,
  rowsOfFingerprint,
  subtractFingerprint,
} from '../domain/fingerprint.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { counted } from '../domain/in_words.ts';
import { type DifferenceDecision, expectedRows, netMissingRows } from '../domain/difference.ts';
import { keptRows } from '../domain/kept_rows.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  exportedFingerprint,
  filesOf,
  type RunSpec,
  sourceAfter,
} from '../domain/run_state.ts';
import { allRows } from '../source/row_selection.ts';
import type { RowRange } from '../source/source.ts';
import {
  type ExportCall,
  type ExportDependencies,
  noEncoder,
  type OpenedCall,
  withPermit,
} from './export_context.ts';
import { formatInterval, intervalOf, rowRangeOf } from './run_interval.ts';
import {
  areKeysUnreadable,
  createBucketSums,
  createSourceRowReader,
  KeysUnreadable,
  mergeKeys,
  readExportedKeys,
} from './exported_keys.ts';
import { filesHaveKeys } from '../source/read_fingerprints.ts';

/** Dependencies of a comparison. */
type ReplacementDependencies = Pick<
  ExportDependencies,
  'recorder' | 'source' | 'readSelection' | 'openLocation' | 'mayShrink' | 'targets'
>;

type ReplacementCall = ExportCall<ReplacementDependencies>;

/** A run, and the run whose manifest it would replace. */
interface ReplacementContext extends ReplacementCall {
  readonly run: ExistingRun;
  readonly replaced: ReplacedRun;
}

/** What a comparison found, without what identifies it. */
type Compared = Omit<ReplacementCheck, 'replaced' | 'generation'>;

/** Rows that only the source has. */
interface LateRows {
  /** Distinct keys, at most `maxLateRows`. */
  readonly keys: readonly SortKey[];
  /** How many rows have them. */
  readonly rows: number;
  readonly has_more: boolean;
}

/** How many late rows a run adds to a manifest, since the journal lists their keys: about a megabyte. */
const maxLateRows = 10_000;

/**
 * Checks a run before it exports; see `checkReplacement`. It reads as much as an export, so it takes one of the export's
 * permits, and it opens the destination: rows that were compared are useless while they cannot be sent.
 * @returns the outcome; null if the run replaces no manifest; `unchanged` if it has completed without publishing
 * @throws RowsMissingInSource, RunEnded
 */
export async function checkRun(call: ExportCall): Promise<ReplacementOutcome | 'unchanged' | null> {
  const { recorder } = call.dependencies;
  return withPermit(call, async ({ run }, destination) => {
    const replaced = await recorder.findReplaced(run);
    const checked = replaced ? await checkAgainst(call, run, replaced) : run;
    const isKept = checked.replacement?.outcome === 'rows_kept';
    if (replaced && (isKept || (await isUnchanged({ ...call, destination }, checked, replaced)))) {
      await recorder.completeUnchanged(call.runId, replaced);
      return 'unchanged';
    }
    await beginExport(recorder, call.runId, checked);
    return checked.replacement?.outcome ?? null;
  });
}

/**
 * Checks before anything is sent that the source still has the rows of the manifest that a run would replace, and records
 * the result; a repeated call returns what was recorded.
 * @throws RowsMissingInSource, RunEnded
 */
async function checkAgainst(
  call: ReplacementCall,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<ExistingRun> {
  if (isChecked(run, replaced)) return requireNoMissingRows(run);
  const context = { ...call, run, replaced };
  const { late, ...compared } = await compareWithReplaced(context);
  const decision = await findDecision(context, compared);
  if (decision === 'remove') return record(context, { ...compared, outcome: 'removal_decided' }, null);
  const base = late && run.phase.name === 'exporting' ? await findBase(context, late) : undefined;
  if (!late || !base) {
    const isKept = decision === 'keep' && staysAsItIs(context, compared);
    const checked = isKept ? ({ ...compared, outcome: 'rows_kept' } as const) : compared;
    return requireNoMissingRows(await record(context, checked, null));
  }
  const extended = { ...compared, outcome: 'late_rows_added', base, late_keys: late.keys } as const;
  const checked = await record(context, extended, null);
  await call.dependencies.recorder.log(
    checked,
    call.runId,
    'WARNING',
    `The source no longer has ${compared.missing_rows.toLocaleString('en')} of the ${counted(compared.bucket_rows, 'row')} that were exported for ${formatInterval(run)}. They stay in the bucket, and ${counted(base.late_rows, 'late row')} ${base.late_rows === 1 ? 'is' : 'are'} added.` +
      (decision === 'keep' ? '' : ' Decide whether to keep or to remove them (exportd export difference).'),
  );
  return checked;
}

/** What a person has decided about exactly the rows that the source lacks; undefined for nothing. */
async function findDecision(
  { dependencies: { recorder, source, readSelection }, run, replaced, signal }: ReplacementContext,
  { outcome, missing, missing_rows }: Compared,
): Promise<DifferenceDecision | undefined> {
  if (outcome !== 'rows_missing' || !missing) return undefined;
  const decided = await recorder.readDecision(run);
  if (!decided?.missing) return undefined;
  // No other number may be removed than a person has typed.
  if (decided.decision === 'remove')
    return missing_rows === decided.rows && haveSameRows(missing, decided.missing) ? 'remove' : undefined;
  const range = rowRangeOf(replaced.run.spec, await readSelection(replaced.run.spec));
  const nothing = { ...missing, encoded_buckets: '' };
  const kept = await keptRows(
    decided.missing,
    { files: missing, source: nothing },
    {
      hashes: () => Promise.resolve(decided.missing_hashes),
      sourceRows: createSourceRowReader({ source, signal }, range, missing),
    },
  );
  return haveSameRows(missing, kept) ? 'keep' : undefined;
}

/** Whether a run that finds only kept rows missing would write the files that there are. */
const staysAsItIs = (
  { run, replaced }: ReplacementContext,
  { source_rows, bucket_rows, missing_rows }: Compared,
): boolean =>
  source_rows <= bucket_rows - missing_rows &&
  run.phase.name === 'exporting' &&
  run.generation === 0 &&
  replaced.adopted_by === null &&
  replaced.run.spec.config_version === run.spec.config_version;

/**
 * The files of the manifest that a run replaces, if it can add late rows to them: the manifest has the same columns, the
 * same bucket, and room for another file. Undefined otherwise.
 */
async function findBase(
  { dependencies: { recorder, readSelection, targets }, runId, run, replaced }: ReplacementContext,
  { keys, rows, has_more }: LateRows,
): Promise<BaseFiles | undefined> {
  const files = filesOf(replaced.run);
  if (keys.length === 0 || replaced.adopted_by !== null || files.count >= bounds.manifestFiles.max)
    return undefined;
  const haveIt = await Promise.all(targets.map((target) => target.hasFilesOf(replaced, run)));
  const isExtensible =
    !haveIt.includes(false) &&
    (await hasSameSelection(readSelection, run.spec, replaced.run.spec)) &&
    (await recorder.areInSameBucket(run, replaced));
  const { rejected_file } = replaced.run;
  return isExtensible ? { files, rejected_file, late_rows: rows, has_more, listed_by: runId } : undefined;
}

/**
 * Checks before publishing that the exported rows contain those of the manifest that the run replaces: rows may have been
 * deleted between the first check and the reading. Usually the fingerprints show it, and nothing is read.
 * @throws RowsMissingInSource, RunEnded
 */
export async function checkExportedRows(
  call: ReplacementCall,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<ExistingRun> {
  const checked = await checkAgainst(call, run, replaced);
  const check = checked.replacement;
  // Otherwise the older files stay, or may go.
  if (!check || check.generation === run.generation) return checked;
  if (!coversReplaced(check) && check.outcome !== 'removal_decided') return checked;
  const context = { ...call, run: checked, replaced };
  const compared = await compareExported(context, check);
  return compared ? requireNoMissingRows(await record(context, compared, run.generation)) : checked;
}

/** Compares the exported rows with those of the manifest. Null when the check before the export still holds. */
async function compareExported(
  context: ReplacementContext,
  check: ReplacementCheck,
): Promise<Compared | null> {
  const { dependencies, run, replaced, signal } = context;
  const { source, readSelection, mayShrink } = dependencies;
  const published = exportedFingerprint(replaced.run);
  const isSame = await hasSameSelection(readSelection, run.spec, replaced.run.spec);
  // Under another selection only the source can tell whether rows of the former one are missing.
  const read = isSame
    ? exportedFingerprint(run)
    : await source.fingerprint(rowRangeOf(replaced.run.spec, await readSelection(replaced.run.spec)), signal);
  if (replaced.run.spec.model === 'persons')
    return haveSameRows(published, read) ? null : { ...check, outcome: 'not_comparable', source: null };
  if (await mayShrink(run.spec)) return { ...check, outcome: 'shrink_allowed', source: null };
  const expected =
    check.outcome === 'removal_decided' ? expectedRows(published, check.missing ?? null) : published;
  if (check.source && containsPublishedRows(read, expected, check.source)) return null;
  // Fewer rows than the manifest has in a bucket cannot be all of them, whatever the source has by now.
  const fewer = isSame && areComparable(expected, read) ? countFewerRows(expected, read) : 0;
  if (fewer > 0) return missingFrom(read, published);
  // A row that is in the source now was there when the files were read: a deleted row does not come back.
  const { late: _, ...compared } = await compareWithReplaced(context);
  const decision = await findDecision(context, compared);
  return decision === 'remove' ? { ...compared, outcome: 'removal_decided' } : compared;
}

const missingFrom = (read: Fingerprint, published: Fingerprint): Compared => ({
  outcome: 'rows_missing',
  missing_rows: countFewerRows(published, read),
  missing: subtractFingerprint(published, read),
  bucket_rows: rowsOfFingerprint(published),
  source_rows: rowsOfFingerprint(read),
  source: null,
});

/**
 * Whether a run must be checked before it exports. It need not if it replaces no manifest, or if the rows that it counted
 * are those of the manifest, which is recorded.
 */
export async function needsCheck(
  { recorder, readSelection }: Pick<ReplacementDependencies, 'recorder' | 'readSelection'>,
  runId: string,
  run: ExistingRun,
  counted: Fingerprint,
): Promise<boolean> {
  const replaced = await recorder.findReplaced(run);
  if (!replaced) return false;
  if (isChecked(run, replaced))
    return (
      run.replacement?.outcome === 'rows_missing' ||
      run.replacement?.outcome === 'rows_kept' ||
      mayBeUnchanged(run, replaced)
    );
  const isSame =
    !counted.all_events &&
    haveSameRows(exportedFingerprint(replaced.run), counted) &&
    (await hasSameSelection(readSelection, run.spec, replaced.run.spec));
  if (!isSame) return true;
  const rows = rowsOfFingerprint(counted);
  const checked = await recorder.recordReplacement(runId, {
    replaced: { run_id: replaced.run_id, generation: replaced.run.generation },
    outcome: 'same_rows',
    missing_rows: 0,
    bucket_rows: rows,
    source_rows: rows,
    source: counted,
    generation: null,
  });
  return mayBeUnchanged(checked, replaced);
}

/**
 * Whether a run publishes nothing if the bucket has what the manifest names: a person asked for its range and not for new files,
 * and it would write the same rows as before, with the same config. Persons may have another state under the same fingerprint.
 */
const mayBeUnchanged = (run: ExistingRun, replaced: ReplacedRun): boolean =>
  keepsUnchanged(run) &&
  isChecked(run, replaced) &&
  run.replacement?.outcome === 'same_rows' &&
  run.settled &&
  run.generation === 0 &&
  run.spec.model === 'events' &&
  replaced.adopted_by === null &&
  replaced.run.spec.config_version === run.spec.config_version &&
  earlierGenerationsOf(replaced.run).kept.length === 0;

/** Whether a run may end without publishing. */
export const keepsUnchanged = ({ spec: { purpose } }: ExistingRun): boolean =>
  purpose.kind === 'backfill' && purpose.keeps_unchanged === true;

/**
 * Whether a run publishes nothing: the manifest that it would replace is in the bucket with all its files, a table has them, and
 * nothing was found since that differs.
 */
async function isUnchanged(
  { dependencies, destination, progress, signal }: ExportCall & Pick<OpenedCall, 'destination'>,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<boolean> {
  const { recorder, targets } = dependencies;
  if (!mayBeUnchanged(run, replaced) || (await recorder.isKnownToDiffer(run, replaced))) return false;
  const haveIt = await Promise.all(targets.map((target) => target.hasFilesOf(replaced, run)));
  if (haveIt.includes(false)) return false;
  const stored = await destination.getManifest(destination.manifestKey(run.spec), signal);
  const manifest =
    stored.state === 'present' ? await parseStoredManifest(stored.text, destination.foreign) : undefined;
  if (manifest?.run_id !== replaced.run_id || manifest.generation !== replaced.run.generation) return false;
  // What it names is asked for. Who may write below the prefix can have changed it.
  if ((await recorder.foreignManifestBecause(run, manifest)) !== null) return false;
  for (const { key, bytes } of [
    ...manifest.files,
    ...(manifest.rejected_file ? [manifest.rejected_file] : []),
  ]) {
    const file = await destination.openObject(key, signal).catch((error: unknown) => {
      // Without s3:ListBucket, a server denies reading what is missing.
      if (error instanceof DestinationError && !error.transient) return null;
      throw error;
    });
    file?.close();
    if (file?.bytes !== bytes) return false;
    progress.rows += 1;
  }
  return true;
}

/**
 * Reserves what the export of a counted run begins with: a generation without files for an interval without rows, and one that
 * all ranges of a split interval share.
 */
export async function beginExport(
  recorder: Pick<ReplacementDependencies['recorder'], 'recordEmpty' | 'reserveGeneration'>,
  runId: string,
  run: ExistingRun,
): Promise<ExistingRun> {
  const { records_total_count: rows, source_fingerprint: fingerprint, settled } = run;
  if (rows === 0 && fingerprint && run.phase.name === 'exporting')
    return recorder.recordEmpty(runId, { fingerprint, settled, encoder: noEncoder });
  if (run.ranges.length > 1 && run.phase.name === 'exporting' && run.generation === 0)
    return recorder.reserveGeneration(runId);
  return run;
}

/** Whether two runs select the same rows of the same model. */
async function hasSameSelection(
  readSelection: ReadSelection,
  one: RunSpec,
  other: RunSpec,
): Promise<boolean> {
  if (one.model !== other.model) return false;
  if (one.config_version === other.config_version) return true;
  const [left, right] = await Promise.all([readSelection(one), readSelection(other)]);
  return JSON.stringify(left) === JSON.stringify(right);
}

const isChecked = ({ replacement }: ExistingRun, { run_id }: ReplacedRun): boolean =>
  replacement?.replaced.run_id === run_id;

const record = (
  { dependencies, runId, replaced }: ReplacementContext,
  compared: Compared & { readonly late_keys?: readonly SortKey[] },
  generation: number | null,
): Promise<ExistingRun> =>
  dependencies.recorder.recordReplacement(runId, {
    ...compared,
    replaced: { run_id: replaced.run_id, generation: replaced.run.generation },
    generation,
  });

/**
 * Holds a run that has only late rows, and cannot add them to the manifest that it was compared with. Does nothing for another.
 * @throws RowsMissingInSource
 */
export async function holdLateRows(
  recorder: Pick<ReplacementCall['dependencies']['recorder'], 'recordReplacement'>,
  runId: string,
  run: ExistingRun,
): Promise<void> {
  if (!run.replacement?.base) return;
  const { base: _, ...check } = run.replacement;
  const held = { ...check, outcome: 'rows_missing', generation: run.generation } as const;
  requireNoMissingRows(await recorder.recordReplacement(runId, held));
}

function requireNoMissingRows(run: ExistingRun): ExistingRun {
  if (run.replacement?.outcome === 'rows_missing')
    throw new RowsMissingInSource(run.replacement, intervalOf(run.spec));
  return run;
}

/**
 * Compares the current rows of the source with the manifest that a run would replace, under the selection and model of
 * that manifest: a new selection is the owner's choice and takes nothing away. Buckets with the same rows need nothing.
 * Of the others the keys are compared: equal counts do not show that one row was deleted and another one came.
 * @returns `late`: the rows that only the source has, if it lacks others
 */
async function compareWithReplaced(
  context: ReplacementContext,
): Promise<Compared & { readonly late?: LateRows }> {
  const { dependencies, run, replaced, signal } = context;
  const { source, readSelection, mayShrink } = dependencies;
  const range = rowRangeOf(replaced.run.spec, await readSelection(replaced.run.spec));
  const exported = exportedFingerprint(replaced.run);
  const now = await source.fingerprint(range, signal);
  // Where persons decide which rows are selected, all events of the project are compared. See `Fingerprint.all_events`.
  const published = now.all_events ? sourceAfter(replaced.run) : exported;
  const found = (outcome: ReplacementCheck['outcome'], missing_rows = 0): Compared => ({
    outcome,
    missing_rows,
    bucket_rows: rowsOfFingerprint(exported),
    source_rows: rowsOfFingerprint(now),
    source:
      outcome === 'same_rows' || outcome === 'every_row_present' || outcome === 'rows_missing' ? now : null,
  });
  const lacks = (missing: Fingerprint | null, rows: number): Compared => ({
    ...found('rows_missing', rows),
    ...(missing && { missing }),
  });
  const differing = areComparable(published, now) ? bucketsToCompare(published, now) : null;
  if (differing?.length === 0) return found(now.all_events ? 'not_comparable' : 'same_rows');
  if (await mayShrink(run.spec)) return found('shrink_allowed');
  // The persons of an interval move to later ones by nature.
  if (range.model === 'persons') return found('not_comparable');
  const keys = differing && (await compareKeys(context, range, now, differing));
  if (!keys) {
    const fewer = differing
      ? countFewerRows(published, now)
      : Math.max(0, rowsOfFingerprint(published) - rowsOfFingerprint(now));
    return fewer > 0 ? lacks(netMissingRows(published, now), fewer) : found('not_comparable');
  }
  // Where persons decide which rows are selected, all events of the project were compared.
  if (keys.missing > 0 && now.all_events) return lacks(keys.missing_rows, keys.missing);
  if (keys.missing > 0) {
    await addUnmerged(context, range, now, { published, late: keys.late });
    return { ...lacks(keys.missing_rows, keys.missing), late: keys.late.found() };
  }
  // The rows are there, but which of them are selected may change before they are read.
  if (now.all_events) return found('not_comparable');
  return { ...found('every_row_present'), source: keys.source };
}

/**
 * Merges the keys of the differing buckets of the files and of the source. Null when keys cannot be read.
 * @returns the number of missing keys, their rows, the late ones, and the rows of the source with the keys that were merged
 */
async function compareKeys(
  context: ReplacementContext,
  range: RowRange,
  now: Fingerprint,
  differing: readonly number[],
): Promise<{
  readonly missing: number;
  readonly missing_rows: Fingerprint;
  readonly late: LateRowCollector;
  readonly source: Fingerprint;
} | null> {
  const { dependencies, runId, run, replaced, progress, signal } = context;
  const { recorder, source, openLocation } = dependencies;
  const log = (message: string): Promise<void> => recorder.log(run, runId, 'WARNING', message);
  const interval = intervalOf(run.spec);
  const ranges = bucketIntervals(interval, now, differing);
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
    if (!filesHaveKeys(range))
      throw new KeysUnreadable('the query of the batch export does not select uuid and _inserted_at');
    const location = await openLocation(replaced.run.spec);
    try {
      const published = readExportedKeys(replaced.run, await recorder.readReplacedFiles(replaced), {
        location,
        ranges,
        onRow,
        onAbsent: (key) =>
          log(
            `${location.nameOf(key)} of generation ${replaced.run.generation} no longer exists. Its rows cannot be kept.`,
          ),
        signal,
      });
      const late = createLateRowCollector();
      const missingSums = createBucketSums(interval.start, now.width_ms);
      const on = { key: onKey, late: late.add, missing: missingSums.add };
      const missing = await mergeKeys(published, sourceKeys(), on);
      const missing_rows = withBuckets({ ...now, encoded_buckets: '' }, missingSums.bucketsAt());
      return { missing, missing_rows, late, source: withBuckets(now, sums.bucketsAt(differing)) };
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

/** Collects the keys of late rows, as many as a run adds. */
function createLateRowCollector() {
  const keys = new Map<string, SortKey>();
  let rows = 0;
  let has_more = false;
  return {
    add: (key: SortKey): void => {
      const text = `${key.inserted_at} ${key.id}`;
      if (keys.size < maxLateRows) keys.set(text, key);
      if (keys.has(text)) rows += 1;
      else has_more = true;
    },
    isFull: (): boolean => has_more,
    found: (): LateRows => ({ keys: [...keys.values()], rows, has_more }),
  };
}

type LateRowCollector = ReturnType<typeof createLateRowCollector>;

/** Adds the keys of the buckets in which the manifest has no rows: all of them are late. */
async function addUnmerged(
  { dependencies: { source }, run, signal }: ReplacementContext,
  range: RowRange,
  now: Fingerprint,
  { published, late }: { readonly published: Fingerprint; readonly late: LateRowCollector },
): Promise<void> {
  const merged = new Set(bucketsOf(published).map(({ index }) => index));
  const indexes = bucketsOf(now).flatMap(({ index }) => (merged.has(index) ? [] : [index]));
  for (const interval of bucketIntervals(intervalOf(run.spec), now, indexes))
    for await (const key of source.keys({ ...range, interval }, signal)) {
      late.add(key);
      if (late.isFull()) return;
    }
}
