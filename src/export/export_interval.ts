import { filesOf, type ExistingRun } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { exportRange, type RangeWork } from './export_range.ts';
import { finishExport } from './finish_export.ts';
import { withDestination } from './run_destination.ts';

/** What of an exported interval travels through a history: numbers alone. */
export interface ExportOutcome {
  /** False when the parts of one execution were sent and rows are left; histories before this member mean true. */
  readonly finished: boolean;
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/** What an attempt at a range, or at the end of an export, is given besides the destination. */
export interface ExportCall {
  readonly dependencies: ExportDependencies;
  readonly runId: string;
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
}

/**
 * One attempt at exporting every row of an interval that is not cut into ranges, from its beginning or from where the
 * attempt before it stopped, until a fresh count agrees. An attempt after the last row returns what was recorded.
 */
export async function exportInterval(call: ExportCall): Promise<ExportOutcome> {
  return withWork(call, async (work, loaded) => {
    let run = loaded;
    while (!run.finished) {
      const exported = await exportRange(work, 0, run);
      if (!exported.done) return outcomeOf(exported.run, false);
      run = await finishExport(work, exported.run);
    }
    return outcomeOf(run, true);
  });
}

/** One attempt at one range of an interval that is cut; `finished` tells whether all of its rows are in files. */
export async function exportOneRange(call: ExportCall, position: number): Promise<ExportOutcome> {
  return withWork(call, async (work, loaded) => {
    if (loaded.finished) return outcomeOf(loaded, true);
    const { run, done } = await exportRange(work, position, loaded);
    return outcomeOf(run, done);
  });
}

/** Ends the export of an interval whose ranges are finished; when the answer is not, the ranges are exported again. */
export async function finishRanges(call: ExportCall): Promise<ExportOutcome> {
  return withWork(call, async (work, loaded) => {
    const run = loaded.finished ? loaded : await finishExport(work, loaded);
    return outcomeOf(run, run.finished !== null);
  });
}

async function withWork<Result>(
  { dependencies, runId, progress, signal }: ExportCall,
  work: (work: RangeWork, loaded: ExistingRun) => Promise<Result>,
): Promise<Result> {
  const { recorder, perExportLimit, selectionOf } = dependencies;
  const { spec } = await recorder.readActive(runId);
  const release = await perExportLimit.acquire(spec.batch_export_id, signal);
  try {
    // What became of the run while it waited for its turn.
    const loaded = await recorder.readActive(runId);
    return await withDestination(dependencies, runId, loaded, async (destination) => {
      const selection = await selectionOf(loaded.spec);
      return work({ dependencies, runId, destination, selection, progress, signal }, loaded);
    });
  } finally {
    release();
  }
}

function outcomeOf(run: ExistingRun, finished: boolean): ExportOutcome {
  const total = (value: (part: { rows: number; bytes: number }) => number) =>
    [...filesOf(run), ...run.ranges.flatMap(({ upload }) => upload?.parts ?? [])].reduce(
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
