import {
  areComparable,
  haveSameRows,
  rowsOfFingerprint,
  type Fingerprint,
} from '../../domain/fingerprint.ts';
import type { ReplacedRun } from '../../domain/replaced_generation.ts';
import {
  containsHeldRows,
  countFewerRows,
  coversReplaced,
  RowsMissingInSource,
  type ReplacementCheck,
} from '../../domain/replacement.ts';
import { exportedFingerprint, type ExistingRun, type RunSpec } from '../../domain/run.ts';
import type { ReadSelection } from '../../destination/row_selections.ts';
import { intervalOf, rowRangeOf } from '../row_range.ts';
import {
  compareWithReplaced,
  type Compared,
  type ReplacementContext,
  type ReplacementDependencies,
} from './compare_with_replaced.ts';

/** Arguments of a check. */
export interface ReplacementCall {
  readonly dependencies: ReplacementDependencies;
  readonly runId: string;
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/**
 * Checks before anything is sent that the source still has the rows of the manifest that a run would replace, and records
 * the result; a repeated call returns what was recorded.
 * @throws RowsMissingInSource, RunEnded
 */
export async function checkReplacement(call: ReplacementCall, run: ExistingRun): Promise<ExistingRun> {
  const replaced = await call.dependencies.recorder.findReplaced(run);
  if (!replaced) return run;
  const checked = isChecked(run, replaced)
    ? run
    : await record({ ...call, run, replaced }, await compareWithReplaced({ ...call, run, replaced }), null);
  return requireNoMissingRows(checked);
}

/**
 * Checks before publishing that the exported rows contain those of the manifest that the run replaces: rows may have been
 * deleted between the first check and the reading. Usually the fingerprints show it, and nothing is read.
 * @throws RowsMissingInSource, RunEnded
 */
export async function checkExportedRows(call: ReplacementCall, run: ExistingRun): Promise<ExistingRun> {
  const replaced = await call.dependencies.recorder.findReplaced(run);
  if (!replaced) return run;
  const checked = await checkReplacement(call, run);
  const check = checked.replacement;
  // Otherwise the older files stay, or may go.
  if (!check || !coversReplaced(check) || check.generation === run.generation) return checked;
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
  const held = exportedFingerprint(replaced.run);
  const isSame = await hasSameSelection(readSelection, run.spec, replaced.run.spec);
  // Under another selection only the source can tell whether rows of the former one are missing.
  const read = isSame
    ? exportedFingerprint(run)
    : await source.fingerprint(rowRangeOf(replaced.run.spec, await readSelection(replaced.run.spec)), signal);
  if (replaced.run.spec.model === 'persons')
    return haveSameRows(held, read) ? null : { ...check, outcome: 'not_comparable', source: null };
  if (await mayShrink(run.spec)) return { ...check, outcome: 'shrink_allowed', source: null };
  if (check.source && containsHeldRows(read, held, check.source)) return null;
  // Fewer rows than the manifest has in a bucket cannot be all of them, whatever the source has by now.
  const fewer = isSame && areComparable(held, read) ? countFewerRows(held, read) : 0;
  if (fewer > 0) return missingFrom(read, held, fewer);
  // A row that is in the source now was there when the files were read: a deleted row does not come back.
  return compareWithReplaced(context);
}

const missingFrom = (read: Fingerprint, held: Fingerprint, missing_rows: number): Compared => ({
  outcome: 'rows_missing',
  missing_rows,
  bucket_rows: rowsOfFingerprint(held),
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
  if (isChecked(run, replaced)) return run.replacement?.outcome === 'rows_missing';
  const isSame =
    !counted.all_events &&
    haveSameRows(exportedFingerprint(replaced.run), counted) &&
    (await hasSameSelection(readSelection, run.spec, replaced.run.spec));
  if (!isSame) return true;
  const rows = rowsOfFingerprint(counted);
  await recorder.recordReplacement(runId, {
    replaced: { run_id: replaced.run_id, generation: replaced.run.generation },
    outcome: 'same_rows',
    missing_rows: 0,
    bucket_rows: rows,
    source_rows: rows,
    source: counted,
    generation: null,
  });
  return false;
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
  compared: Compared,
  generation: number | null,
): Promise<ExistingRun> =>
  dependencies.recorder.recordReplacement(runId, {
    ...compared,
    replaced: { run_id: replaced.run_id, generation: replaced.run.generation },
    generation,
  });

function requireNoMissingRows(run: ExistingRun): ExistingRun {
  if (run.replacement?.outcome === 'rows_missing')
    throw new RowsMissingInSource(run.replacement, intervalOf(run.spec));
  return run;
}
