import { DestinationFault } from '../src/destination/destination.ts';
import type { ExportedFile, OpenedRun, OpenUpload } from '../src/domain/run.ts';
import { abandonUpload } from './abandon.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { exportRows, onlyFile, type ExportAttempt } from './export_rows.ts';
import { fileOf } from './file_parts.ts';
import { completeFile, type ResumedFile } from './file_writer.ts';
import { findRemains } from './resume.ts';
import { withDestination } from './run_destination.ts';
import { intervalOf, rangeOf } from './run_range.ts';

/** What of an exported interval travels through a history: numbers alone. */
export interface ExportOutcome {
  /** False when the parts of one execution were sent and rows are left; histories before this member mean true. */
  readonly finished: boolean;
  readonly generation: number;
  readonly rows: number;
  readonly bytes: number;
  readonly source_rows: number;
}

/**
 * One attempt at exporting every row of a run's interval. It goes on where the attempt before it stopped, as far as
 * the destination has what the journal says; an attempt after the last row returns what was recorded.
 */
export async function exportInterval(
  dependencies: ExportDependencies,
  runId: string,
  progress: { rows: number },
  signal: AbortSignal,
): Promise<ExportOutcome> {
  const { runSteps, source, encoders } = dependencies;
  const loaded = await runSteps.load(runId);
  if (loaded.finished) return outcomeOf(loaded, true);
  const begun = await runSteps.beginExport(runId);
  return withDestination(dependencies, runId, begun, async (destination) => {
    const columns = await source.columns(begun.subject.model);
    const encoder = encoders.fileEncoder(destination.encoding, columns);
    const attempt = { dependencies, runId, destination, encoder, progress, signal };
    const { run, resumed } = await takeUp(attempt, begun);
    if (run.files.length === 0) {
      await logBeginning(attempt, run, resumed);
      if (!(await exportRows(attempt, run, resumed)))
        return outcomeOf(await runSteps.requireAttempt(runId, run), false);
    }
    const source_rows = await source.countRows(rangeOf(run), signal);
    const facts = { source_rows, encoder: encoder.identity };
    const finished = await runSteps.finishExport(runId, run.generation, facts);
    await logDifference(attempt, finished, source_rows);
    return outcomeOf(finished, true);
  });
}

/** The run with the generation that this attempt writes, and the file that it goes on with. */
interface Place {
  readonly run: OpenedRun;
  readonly resumed: ResumedFile | null;
}

/**
 * Finds what the attempt before left. A file whose object stands is recorded; one that can be gone on with is, under
 * the same generation; in every other case the next generation begins, so that no key is ever written twice.
 */
async function takeUp(attempt: ExportAttempt, begun: OpenedRun): Promise<Place> {
  const { dependencies, runId, destination, encoder, signal } = attempt;
  const { upload } = begun;
  if (begun.encoder === encoder.identity) {
    const place = upload
      ? await goOnWith(attempt, begun, upload)
      : begun.files.length > 0 && { run: begun, resumed: null };
    if (place) return place;
  }
  if (upload) await abandonUpload(destination, upload);
  signal.throwIfAborted();
  return { run: await dependencies.runSteps.reserveGeneration(runId, begun), resumed: null };
}

async function goOnWith(
  { dependencies: { runSteps }, runId, destination, signal }: ExportAttempt,
  begun: OpenedRun,
  open: OpenUpload,
): Promise<Place | undefined> {
  const remains = await findRemains(destination, open, signal);
  const recorded = async (file: ExportedFile): Promise<Place> => ({
    run: await runSteps.recordFile(runId, begun, file),
    resumed: null,
  });
  switch (remains.state) {
    case 'finished':
      return recorded(fileOf(open.key, open.parts));
    case 'whole':
      try {
        await runSteps.requireAttempt(runId, begun);
        return await recorded(await completeFile(remains.upload, open.parts, remains.etags, signal));
      } catch (error) {
        if (error instanceof DestinationFault && error.type === 'UploadLost') return undefined;
        throw error;
      }
    case 'open': {
      const numbers = remains.parts.map(({ part_number }) => part_number);
      return { run: await runSteps.resumeUpload(runId, begun, open.key, numbers), resumed: remains };
    }
    case 'hidden':
      await runSteps.log(
        begun,
        runId,
        'WARNING',
        'The parts that are in the bucket already could not be listed, so the file is exported anew: the credentials may lack the right to list the parts of an upload.',
      );
      return undefined;
    case 'lost':
      return undefined;
  }
}

async function logBeginning(
  { dependencies: { runSteps }, runId, destination, encoder, progress }: ExportAttempt,
  run: OpenedRun,
  resumed: ResumedFile | null,
): Promise<void> {
  const key = resumed?.upload.key ?? destination.fileKey(run.subject, onlyFile(run), encoder.extension);
  const { rows } = fileOf(key, resumed?.parts ?? []);
  progress.rows = rows;
  const message =
    rows > 0
      ? `Going on with ${destination.nameOf(key)} after ${rows} records.`
      : `Exporting ${intervalOf(run)} to ${destination.nameOf(key)}.`;
  await runSteps.log(run, runId, 'INFO', message);
}

async function logDifference(
  { dependencies: { runSteps }, runId }: ExportAttempt,
  run: OpenedRun,
  sourceRows: number,
): Promise<void> {
  const { rows } = outcomeOf(run, true);
  // Persons are mutable: one that changed since then belongs to a later interval, which is no difference to report.
  if (rows === sourceRows || run.subject.model !== 'events') return;
  await runSteps.log(
    run,
    runId,
    'WARNING',
    `The source now has ${sourceRows} records in ${intervalOf(run)}, but ${rows} were exported; rows arrived late or were deleted.`,
  );
}

function outcomeOf(run: OpenedRun, finished: boolean): ExportOutcome {
  const total = (value: (part: { rows: number; bytes: number }) => number) =>
    [...run.files, ...(run.upload?.parts ?? [])].reduce((sum, part) => sum + value(part), 0);
  return {
    finished,
    generation: run.generation,
    rows: total(({ rows }) => rows),
    bytes: total(({ bytes }) => bytes),
    source_rows: run.finished?.source_rows ?? 0,
  };
}
