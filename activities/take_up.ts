import { DestinationFault } from '../src/destination/destination.ts';
import type { CompletedFile, OpenedRun, OpenUpload } from '../src/domain/run.ts';
import { abandonUpload } from './abandon.ts';
import { fileOf } from './file_parts.ts';
import { completeFile, type ResumedFile } from './file_writer.ts';
import { isNumbered, namesOf, nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { findRemains } from './resume.ts';

/** The run with the generation that this attempt writes, and the file that it goes on with. */
export interface Place {
  readonly run: OpenedRun;
  readonly resumed: ResumedFile | null;
}

/**
 * Finds what the attempt before left of its range. A file whose object stands is recorded; one that can be gone on with
 * is. A file that is lost starts anew under the next number, or, where an only file has none, under the interval's next
 * generation, so that no key is ever written twice. So does everything when another encoder made what is there.
 */
export async function takeUp(attempt: ExportAttempt, begun: OpenedRun): Promise<Place> {
  const { destination, encoder, signal } = attempt;
  const { upload, files, attempt: ordinal } = rangeAt(attempt, begun);
  const sameEncoder = begun.encoder === null || begun.encoder === encoder.identity;
  if (begun.generation > 0 && sameEncoder) {
    const place = upload ? await goOnWith(attempt, begun, upload) : { run: begun, resumed: null };
    // The attempt before may have ended between beginning an upload and telling the journal.
    if (!upload && ordinal > 1) await destination.abandonUnknown(nextKey(attempt, begun), signal);
    if (place) return place;
  }
  if (upload) await abandonUpload(destination, upload);
  signal.throwIfAborted();
  if (begun.generation > 0 && sameEncoder && (isNumbered(attempt, begun) || files.length > 0))
    return { run: begun, resumed: null };
  const names = namesOf(attempt, begun);
  return { run: await attempt.dependencies.runSteps.reserveGeneration(attempt.runId, names), resumed: null };
}

async function goOnWith(
  attempt: ExportAttempt,
  begun: OpenedRun,
  open: OpenUpload,
): Promise<Place | undefined> {
  const { dependencies, runId, destination, encoder, signal } = attempt;
  const { runSteps } = dependencies;
  const names = namesOf(attempt, begun);
  const remains = await findRemains(destination, open, signal);
  const recorded = async (file: CompletedFile): Promise<Place> => ({
    run: await runSteps.recordFile(runId, names, file),
    resumed: null,
  });
  switch (remains.state) {
    case 'finished':
      return recorded(fileOf(open.key, open.parts));
    case 'whole':
      try {
        await runSteps.requireAttempt(runId, names);
        return await recorded(await completeFile(remains.upload, open.parts, remains.etags, signal));
      } catch (error) {
        if (error instanceof DestinationFault && error.type === 'UploadLost') return undefined;
        throw error;
      }
    case 'open': {
      if (!encoder.resumable) return undefined;
      const numbers = remains.parts.map(({ part_number }) => part_number);
      return { run: await runSteps.resumeUpload(runId, names, open.key, numbers), resumed: remains };
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
