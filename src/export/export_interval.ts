/**
 * The way of an interval, from rows in PostgreSQL to a manifest in the bucket. The workflow `batchExportRun` calls the
 * steps in this order. Each is an activity, which may be repeated or killed anywhere:
 *
 * 1. `count.ts` waits until no open transaction can add rows to the interval, counts its rows, and splits a large interval
 *    into ranges of keys.
 * 2. `check_replacement.ts` checks that the source still has the rows of the manifest that the run would replace.
 * 3. `RangeExport` moves the rows of one range to files. Workers export the ranges of an interval at the same time.
 * 4. `finishRanges` writes the file of rejected rows and compares the files with a fresh fingerprint of the source.
 *    If they differ, the run goes back to step 3 with the next generation.
 * 5. `publish.ts` writes the manifest, which makes the files visible, and completes the run.
 *
 * In step 3, the journal is always ahead of the bucket, so that an attempt can stop anywhere: see `range_export.ts`.
 */
import { type DeferredSteps, finishStep, type PreparedRun } from '../decisions/deferred_steps.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import { countFewerRows, type Fingerprint, haveSameRows, rowsOfFingerprint } from '../domain/fingerprint.ts';
import {
  type ExistingRun,
  exportedFingerprint,
  filesOf,
  finishedOf,
  sourceBefore,
} from '../domain/run_state.ts';
import { type ExportCall, noEncoder, type OpenedCall, recordRest, withPermit } from './export_context.ts';
import { formatInterval, rowRangeOf } from './run_interval.ts';
import { createStageClock } from './stage_clock.ts';
import { publishOpened } from './publish.ts';
import { RangeExport } from './range_export.ts';
import { holdLateRows } from './check_replacement.ts';
import { type RejectedLines, writeRejectedFile } from './rejected.ts';

/** How often a run exports its interval again because of late rows. After that comparisons find them. */
const maxLateGenerations = 2;

/** The result of an export activity, which is stored in the workflow's history: numbers only. */
export interface ExportOutcome {
  /** False when rows remain: for the next execution, or because the interval is exported again. */
  readonly finished: boolean;
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/**
 * One attempt at exporting an interval that is not split. It resumes where the previous attempt stopped and ends when a
 * fresh count matches. Once the export is finished, it returns the recorded outcome.
 * @param publishes whether it publishes the run in the same destination once the export is finished
 */
export async function exportInterval(
  call: ExportCall,
  { publishes = false }: { readonly publishes?: boolean } = {},
): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, { run: existing, others, deferred }) => {
    let run = existing;
    let written: readonly CompletedFile[] | null = null;
    while (run.phase.name === 'exporting') {
      const { rejected, ...exported } = await RangeExport.run(opened, 0, { run, others, deferred });
      ({ written } = exported);
      try {
        if (!exported.done) return exportOutcomeOf(exported.run, false);
        run = await finish(opened, exported.run, rejected, { deferred, isLast: !publishes });
      } finally {
        rejected?.close();
      }
    }
    if (publishes) await publishOpened(opened, run, { others, written, deferred });
    return exportOutcomeOf(run, true);
  });
}

/** One attempt at one range of a split interval; `finished` is true when all its rows are in files. */
export async function exportOneRange(call: ExportCall, position: number): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, found) => {
    if (found.run.phase.name !== 'exporting') return exportOutcomeOf(found.run, true);
    const { deferred } = found;
    const { run, done } = await RangeExport.run(opened, position, found);
    if (!deferred.isEmpty) await call.dependencies.recorder.recordDeferred(call.runId, deferred.take());
    return exportOutcomeOf(run, done);
  });
}

/** Finishes a split interval; `finished` is false when its ranges must be exported again. */
export async function finishRanges(call: ExportCall): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, { run: existing, deferred }) => {
    const run =
      existing.phase.name === 'exporting'
        ? await finish(opened, existing, null, { deferred, isLast: true })
        : existing;
    return exportOutcomeOf(run, run.phase.name !== 'exporting');
  });
}

const withOpenedRun = (
  call: ExportCall,
  work: (opened: OpenedCall, found: PreparedRun) => Promise<ExportOutcome>,
): Promise<ExportOutcome> =>
  withPermit(call, async (found, destination) => {
    const { recorder, readSelection } = call.dependencies;
    const only = await recorder.readLateKeys(found.run);
    const selection = { ...(await readSelection(found.run.spec)), ...(only && { only }) };
    return work({ ...call, destination, selection }, found);
  });

/** How the end of an export is recorded. */
interface FinishOptions {
  /** Steps that are recorded with it. */
  readonly deferred: DeferredSteps;
  /** Whether it is the last step of the attempt. Otherwise it is deferred too, if another one is. */
  readonly isLast: boolean;
}

/** Finishes the export, which waits for a fresh fingerprint of the source. What was deferred is recorded also if that fails. */
async function finish(
  call: OpenedCall,
  run: ExistingRun,
  rejectedLines: RejectedLines | null,
  options: FinishOptions,
): Promise<ExistingRun> {
  const { dependencies, runId } = call;
  const stages = createStageClock(dependencies.onStage);
  try {
    return await stages.measure('read', () => finishGeneration(call, run, rejectedLines, options));
  } catch (error) {
    await recordRest(dependencies.recorder, runId, options.deferred);
    throw error;
  } finally {
    stages.report();
  }
}

/**
 * Finishes the export of an interval whose ranges are in files: writes the file of rejected rows and compares the exported
 * rows with those that the source has now. If they differ, the interval is exported again under the next generation, and
 * the returned run is not finished.
 */
async function finishGeneration(
  call: OpenedCall,
  exported: ExistingRun,
  rejectedLines: RejectedLines | null,
  { deferred, isLast }: FinishOptions,
): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = call;
  const { recorder, source } = dependencies;
  const record = (run: ExistingRun): Promise<ExistingRun> =>
    deferred.isEmpty ? Promise.resolve(run) : recorder.recordDeferred(runId, deferred.take());
  const run = filesOf(exported).rejected > 0 ? await record(exported) : exported;
  // Resuming one of them may have started a new generation.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const { rejected } = filesOf(run);
  // A manifest has one file of rejected rows.
  if (rejected > 0 && run.replacement?.base?.rejected_file) await holdLateRows(recorder, runId, run);
  const counted = rejected > 0 ? await writeRejectedFile(call, run, rejectedLines) : run;
  if (counted.generation !== run.generation) return counted;
  const now = await source.fingerprint(rowRangeOf(run.spec, selection), signal);
  const rowsOfFiles = exportedFingerprint(counted);
  const expected = now.all_events ? sourceBefore(counted) : rowsOfFiles;
  if (!(expected && hasExpectedRows(run, expected, now))) {
    await record(run);
    const again = run.late_generations < maxLateGenerations;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `${describeDifference(expected, now, formatInterval(run))}: rows arrived late or were deleted. ${again ? 'Exporting the interval again.' : 'A later comparison checks them again.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation, now);
  }
  const { only, ...selected } = selection;
  const all = only ? await source.fingerprint(rowRangeOf(run.spec, selected), signal) : now;
  const facts = {
    // How many are selected changes with their persons, so the rows that were read are reported.
    source_rows: rowsOfFingerprint(all.all_events ? rowsOfFiles : all),
    fingerprint: all,
    encoder: run.encoder ?? noEncoder,
  };
  if (!isLast && !deferred.isEmpty) return deferred.add(runId, run, finishStep(run.generation, facts));
  return recorder.finishExport(runId, run.generation, facts, { before: deferred.take() });
}

/**
 * Whether the source has the rows that were read. A person that changed meanwhile has moved to a later interval, so only more
 * persons are a difference; later comparisons find one of several that came and went.
 */
const hasExpectedRows = ({ spec }: ExistingRun, expected: Fingerprint, now: Fingerprint): boolean =>
  spec.model === 'persons' ? countFewerRows(now, expected) === 0 : haveSameRows(expected, now);

function describeDifference(expected: Fingerprint | null, now: Fingerprint, interval: string): string {
  const [before, after] = [expected ? rowsOfFingerprint(expected) : 0, rowsOfFingerprint(now)];
  if (now.all_events)
    return `Project has ${after} events in the source for ${interval}, ${before} when reading started`;
  return before === after
    ? `Source has ${after} rows for ${interval}, and not all of them are the ${before} that were exported`
    : `Source has ${after} rows for ${interval}, ${before} were exported`;
}

/** What the files and parts of a run have. */
export function exportOutcomeOf(run: ExistingRun, finished: boolean): ExportOutcome {
  const total = (value: (part: { rows: number; bytes: number }) => number) =>
    [filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
      (sum, part) => sum + value(part),
      0,
    );
  return {
    finished,
    generation: run.generation,
    rows: total(({ rows }) => rows),
    bytes: total(({ bytes }) => bytes),
    source_rows: finishedOf(run)?.source_rows ?? 0,
  };
}
