import { DestinationError } from '../destination/destination.ts';
import type { CompletedFile, ExistingRun, OpenUpload } from '../domain/run.ts';
import { tryAbortUpload } from './abort_upload.ts';
import { summarizeParts } from './file_summary.ts';
import { completeFile, type ResumedFile } from './file_writer.ts';
import { isNumbered, currentAttempt, nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { inspectUpload } from './upload_state.ts';

/** The run with the generation that this attempt writes, and the file that it goes on with. */
export interface ResumePoint {
  readonly run: ExistingRun;
  readonly resumed: ResumedFile | null;
}

/**
 * Finds what the attempt before left of its range. A file whose object stands is recorded; one that can be gone on with
 * is. A file that is lost starts anew under the next number, or, where an only file has none, under the interval's next
 * generation, so that no key is ever written twice. So does everything when another encoder made what is there.
 */
export async function resumeRange(attempt: ExportAttempt, begun: ExistingRun): Promise<ResumePoint> {
  const { destination, encoder, signal } = attempt;
  const { upload, files, attempt: ordinal } = rangeAt(attempt, begun);
  const sameEncoder = begun.encoder === null || begun.encoder === encoder.identity;
  if (begun.generation > 0 && sameEncoder) {
    const place = upload ? await goOnWith(attempt, begun, upload) : { run: begun, resumed: null };
    // The attempt before may have ended between beginning an upload and telling the journal.
    if (!upload && ordinal > 1) await destination.abortOrphanedUploads(nextKey(attempt, begun), signal);
    if (place) return place;
  }
  if (upload) await tryAbortUpload(destination, upload);
  signal.throwIfAborted();
  if (begun.generation > 0 && sameEncoder && (isNumbered(attempt, begun) || files.length > 0))
    return { run: begun, resumed: null };
  const names = currentAttempt(attempt, begun);
  return { run: await attempt.dependencies.recorder.reserveGeneration(attempt.runId, names), resumed: null };
}

async function goOnWith(
  attempt: ExportAttempt,
  begun: ExistingRun,
  open: OpenUpload,
): Promise<ResumePoint | undefined> {
  const { dependencies, runId, destination, encoder, signal } = attempt;
  const { recorder } = dependencies;
  const names = currentAttempt(attempt, begun);
  const remains = await inspectUpload(destination, open, signal);
  const recorded = async (file: CompletedFile): Promise<ResumePoint> => ({
    run: await recorder.recordFile(runId, names, file),
    resumed: null,
  });
  switch (remains.state) {
    case 'finished':
      return recorded(summarizeParts(open.key, open.parts));
    case 'whole':
      try {
        await recorder.requireAttempt(runId, names);
        return await recorded(await completeFile(remains.upload, open.parts, remains.etags, signal));
      } catch (error) {
        if (error instanceof DestinationError && error.type === 'UploadNotFound') return undefined;
        throw error;
      }
    case 'open': {
      if (!encoder.resumable) return undefined;
      const numbers = remains.parts.map(({ part_number }) => part_number);
      return { run: await recorder.resumeUpload(runId, names, open.key, numbers), resumed: remains };
    }
    case 'hidden':
      await recorder.log(
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
