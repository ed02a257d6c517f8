import { DestinationError } from '../destination/destination.ts';
import type { CompletedFile, ExistingRun, OpenUpload } from '../domain/run.ts';
import { tryAbortUpload } from './abort_upload.ts';
import { summarizeParts } from './file_summary.ts';
import { readCutBlock } from './cut_block.ts';
import { completeFile, type ResumedFile } from './file_writer.ts';
import { currentAttempt, isNumbered, nextIdentity, rangeAt, type ExportAttempt } from './range_attempt.ts';
import { inspectUpload } from './upload_state.ts';

/** Where an attempt continues: the run with the generation to write, and the file to resume. */
export interface ResumePoint {
  readonly run: ExistingRun;
  readonly resumed: ResumedFile | null;
}

/**
 * Finds out what the previous attempt left of the range, and resumes it. A file whose object exists is recorded; an upload
 * that can be resumed is. Otherwise the file starts over under the next file number or, if it is the only file and has
 * none, under the interval's next generation: no key is ever written twice. Everything starts over when another encoder
 * wrote what exists.
 */
export async function resumeRange(attempt: ExportAttempt, started: ExistingRun): Promise<ResumePoint> {
  const { destination, encoder, signal } = attempt;
  const { upload, files, attempt: ordinal } = rangeAt(attempt, started);
  const hasSameEncoder = started.encoder === null || started.encoder === encoder.identity;
  if (started.generation > 0 && hasSameEncoder) {
    const point = upload ? await resumeAtUpload(attempt, started, upload) : { run: started, resumed: null };
    // The previous attempt may have ended after it created an upload and before it recorded it.
    if (!upload && ordinal > 1)
      await destination.abortOrphanedUploads(
        started.spec,
        nextIdentity(attempt, started),
        encoder.extension,
        signal,
      );
    if (point) return point;
  }
  if (upload) await tryAbortUpload(destination, upload);
  signal.throwIfAborted();
  if (started.generation > 0 && hasSameEncoder && (isNumbered(attempt, started) || files.count > 0))
    return { run: started, resumed: null };
  const { recorder } = attempt.dependencies;
  return {
    run: await recorder.reserveGeneration(attempt.runId, currentAttempt(attempt, started)),
    resumed: null,
  };
}

/** Undefined when the file has to start over. */
async function resumeAtUpload(
  attempt: ExportAttempt,
  started: ExistingRun,
  open: OpenUpload,
): Promise<ResumePoint | undefined> {
  const { dependencies, runId, destination, encoder, signal } = attempt;
  const { recorder } = dependencies;
  const rangeAttempt = currentAttempt(attempt, started);
  const upload = await inspectUpload(destination, open, signal);
  const recordFile = async (file: CompletedFile): Promise<ResumePoint> => ({
    run: await recorder.recordFile(runId, rangeAttempt, file),
    resumed: null,
  });
  switch (upload.state) {
    case 'completed':
      return recordFile({
        ...summarizeParts(open.key, open.parts),
        expires_at: upload.expires_at,
      });
    case 'all_parts_uploaded':
      try {
        await recorder.requireAttempt(runId, rangeAttempt);
        return await recordFile(await completeFile(upload.upload, open.parts, upload.etags, signal));
      } catch (error) {
        if (error instanceof DestinationError && error.type === 'UploadNotFound') return undefined;
        throw error;
      }
    case 'resumable': {
      if (!encoder.resumable) return undefined;
      const cutBlock = await readCutBlock(attempt, started, upload.parts);
      if (cutBlock === 'changed') return undefined;
      const numbers = upload.parts.map(({ part_number }) => part_number);
      const run = await recorder.resumeUpload(runId, rangeAttempt, open.key, numbers);
      return { run, resumed: { ...upload, cutBlock } };
    }
    case 'not_listable':
      await recorder.log(
        started,
        runId,
        'WARNING',
        'The uploaded parts could not be listed, so the file is exported from the start. Grant the credentials s3:ListMultipartUploadParts to resume files.',
      );
      return undefined;
    case 'missing':
      return undefined;
  }
}
