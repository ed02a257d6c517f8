import { filesOf, type ExistingRun } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { exportRange } from './export_range.ts';
import { finishExport } from './finish_export.ts';
import type { RangeContext } from './range_context.ts';
import { withDestination } from './run_destination.ts';
import { createStageClock } from './stage_clock.ts';

/** The result of an export activity, which is stored in the workflow's history: numbers only. */
export interface ExportOutcome {
  /** False when rows remain: for the next execution, or because the interval is exported again. */
  readonly finished: boolean;
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/** Arguments of one activity call. */
export interface ExportCall {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  /** Reported with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/**
 * One attempt at exporting an interval that is not split. It resumes where the previous attempt stopped and ends when a
 * fresh count matches. Once the export is finished, it returns the recorded outcome.
 */
export async function exportInterval(call: ExportCall): Promise<ExportOutcome> {
  return withContext(call, async (context, existing) => {
    let run = existing;
    while (!run.finished) {
      const exported = await exportRange(context, 0, run);
      if (!exported.done) return outcomeOf(exported.run, false);
      run = await finish(context, exported.run);
    }
    return outcomeOf(run, true);
  });
}

/** One attempt at one range of a split interval; `finished` is true when all its rows are in files. */
export async function exportOneRange(call: ExportCall, position: number): Promise<ExportOutcome> {
  return withContext(call, async (context, existing) => {
    if (existing.finished) return outcomeOf(existing, true);
    const { run, done } = await exportRange(context, position, existing);
    return outcomeOf(run, done);
  });
}

/** Finishes a split interval; `finished` is false when its ranges must be exported again. */
export async function finishRanges(call: ExportCall): Promise<ExportOutcome> {
  return withContext(call, async (context, existing) => {
    const run = existing.finished ? existing : await finish(context, existing);
    return outcomeOf(run, run.finished !== null);
  });
}

/** Finishes the export, which waits for a fresh fingerprint of the source. */
async function finish(context: RangeContext, run: ExistingRun): Promise<ExistingRun> {
  const stages = createStageClock(context.dependencies.onStage);
  try {
    return await stages.measure('read', () => finishExport(context, run));
  } finally {
    stages.report();
  }
}

async function withContext<Result>(
  { dependencies, runId, progress, signal }: ExportCall,
  work: (context: RangeContext, existing: ExistingRun) => Promise<Result>,
): Promise<Result> {
  const { recorder, perExportLimit, readSelection } = dependencies;
  const { spec } = await recorder.readActive(runId);
  const release = await perExportLimit.acquire(spec.batch_export_id, signal);
  try {
    // Read again, since the run may have changed while it waited for the limit.
    const existing = await recorder.readActive(runId);
    return await withDestination(dependencies, runId, existing, async (destination) => {
      const selection = await readSelection(existing.spec);
      return work({ dependencies, runId, destination, selection, progress, signal }, existing);
    });
  } finally {
    release();
  }
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
