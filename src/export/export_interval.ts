import { haveSameRows, rowsOfFingerprint, type Fingerprint } from '../domain/fingerprint.ts';
import { type ExistingRun, exportedFingerprint, filesOf } from '../domain/run_state.ts';
import {
  createStageClock,
  formatInterval,
  noEncoder,
  rowRangeOf,
  withPermit,
  type ExportCall,
  type OpenedCall,
} from './export_context.ts';
import { RangeExport } from './range_export.ts';
import { writeRejectedFile } from './rejected.ts';

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
 */
export async function exportInterval(call: ExportCall): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    let run = existing;
    while (!run.finished) {
      const exported = await RangeExport.run(opened, 0, run);
      if (!exported.done) return outcomeOf(exported.run, false);
      run = await finish(opened, exported.run);
    }
    return outcomeOf(run, true);
  });
}

/** One attempt at one range of a split interval; `finished` is true when all its rows are in files. */
export async function exportOneRange(call: ExportCall, position: number): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    if (existing.finished) return outcomeOf(existing, true);
    const { run, done } = await RangeExport.run(opened, position, existing);
    return outcomeOf(run, done);
  });
}

/** Finishes a split interval; `finished` is false when its ranges must be exported again. */
export async function finishRanges(call: ExportCall): Promise<ExportOutcome> {
  return withOpenedRun(call, async (opened, existing) => {
    const run = existing.finished ? existing : await finish(opened, existing);
    return outcomeOf(run, run.finished !== null);
  });
}

const withOpenedRun = (
  call: ExportCall,
  work: (opened: OpenedCall, existing: ExistingRun) => Promise<ExportOutcome>,
): Promise<ExportOutcome> =>
  withPermit(call, async (existing, destination) => {
    const selection = await call.dependencies.readSelection(existing.spec);
    return work({ ...call, destination, selection }, existing);
  });

/** Finishes the export, which waits for a fresh fingerprint of the source. */
async function finish(call: OpenedCall, run: ExistingRun): Promise<ExistingRun> {
  const stages = createStageClock(call.dependencies.onStage);
  try {
    return await stages.measure('read', () => finishGeneration(call, run));
  } finally {
    stages.report();
  }
}

/**
 * Finishes the export of an interval whose ranges are in files: writes the file of rejected rows and compares the exported
 * rows with those that the source has now. If they differ, the interval is exported again under the next generation, and
 * the returned run is not finished.
 */
async function finishGeneration(call: OpenedCall, run: ExistingRun): Promise<ExistingRun> {
  const { dependencies, runId, selection, signal } = call;
  const { recorder, source } = dependencies;
  // Resuming one of them may have started a new generation.
  if (run.ranges.some(({ finished }) => !finished)) return run;
  const { rejected } = filesOf(run);
  const counted = rejected > 0 ? await writeRejectedFile(call, run) : run;
  if (counted.generation !== run.generation) return counted;
  const now = await source.fingerprint(rowRangeOf(run.spec, selection), signal);
  const exported = exportedFingerprint(counted);
  const expected = now.all_events ? counted.read_since : exported;
  // Persons are mutable: one that changed meanwhile has moved to a later interval, which is no difference.
  if (run.spec.model === 'events' && !(expected && haveSameRows(expected, now))) {
    const again = run.late_generations < maxLateGenerations;
    await recorder.log(
      run,
      runId,
      'WARNING',
      `${describeDifference(expected, now, formatInterval(run))}: rows arrived late or were deleted. ${again ? 'Exporting the interval again.' : 'A later comparison checks them again.'}`,
    );
    if (again) return recorder.reserveForLateRows(runId, run.generation, now);
  }
  return recorder.finishExport(runId, run.generation, {
    // How many are selected changes with their persons, so the rows that were read are reported.
    source_rows: rowsOfFingerprint(now.all_events ? exported : now),
    fingerprint: now,
    encoder: run.encoder ?? noEncoder,
  });
}

function describeDifference(expected: Fingerprint | null, now: Fingerprint, interval: string): string {
  const [before, after] = [expected ? rowsOfFingerprint(expected) : 0, rowsOfFingerprint(now)];
  if (now.all_events)
    return `Project has ${after} events in the source for ${interval}, ${before} when reading started`;
  return before === after
    ? `Source has ${after} rows for ${interval}, and not all of them are the ${before} that were exported`
    : `Source has ${after} rows for ${interval}, ${before} were exported`;
}

function outcomeOf(run: ExistingRun, finished: boolean): ExportOutcome {
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
    source_rows: run.finished?.source_rows ?? 0,
  };
}
