import { randomUUID } from 'node:crypto';
import type { FileUpload, NewFile } from '../destination/destination.ts';
import type { CompletedFile, ExistingRun } from '../domain/run.ts';
import { tryAbortUpload } from './abort_upload.ts';
import { summarizeParts } from './file_summary.ts';
import type { BuiltPart } from './part_builder.ts';
import { currentAttempt, markOf, nextKey, rangeAt, type ExportAttempt } from './range_attempt.ts';

/** The run of an attempt, which changes with the steps that it records. */
export interface CurrentRun {
  run: ExistingRun;
}

/** Creates the upload of the range's next file under a key that is not taken, and records it. */
export async function startUpload(
  attempt: ExportAttempt,
  current: CurrentRun,
  signal: AbortSignal,
): Promise<FileUpload> {
  const { dependencies, runId, destination, encoder } = attempt;
  for (;;) {
    const file = nextFile(attempt, current.run);
    if (await destination.isTaken(file.key, signal)) {
      await skipTakenKey(attempt, current, file.key);
      continue;
    }
    const upload = await destination.createUpload(file, signal);
    try {
      current.run = await dependencies.recorder.recordUpload(runId, currentAttempt(attempt, current.run), {
        file: rangeAt(attempt, current.run).next_file,
        key: upload.key,
        upload_id: upload.upload_id,
        upload_token: upload.upload_token,
        part_bytes: upload.part_bytes,
        encoder: encoder.identity,
      });
    } catch (error) {
      // An upload that the journal does not know would never be aborted otherwise.
      await tryAbortUpload(destination, upload);
      throw error;
    }
    return upload;
  }
}

/**
 * Writes the range's next file in one request. The journal records key, token and part before that: whoever finds the
 * object later knows what is in it. The store refuses a key that is taken.
 */
export async function writeWholeFile(
  attempt: ExportAttempt,
  current: CurrentRun,
  { part, body }: BuiltPart,
  signal: AbortSignal,
): Promise<CompletedFile> {
  const { dependencies, runId, destination, encoder } = attempt;
  for (;;) {
    const file = nextFile(attempt, current.run);
    const { key, upload_token } = file;
    const started = {
      file: rangeAt(attempt, current.run).next_file,
      key,
      upload_token,
      encoder: encoder.identity,
    };
    const rangeAttempt = currentAttempt(attempt, current.run);
    current.run = await dependencies.recorder.planWholeFile(runId, rangeAttempt, started, part);
    const written = await destination.putFile(file, body, signal);
    if (written) return { ...summarizeParts(key, [part]), ...written };
    await skipTakenKey(attempt, current, key);
  }
}

/** A new token, and a key that contains its start where the store has no conditional writes. */
function nextFile(attempt: ExportAttempt, run: ExistingRun): NewFile {
  const upload_token = randomUUID();
  const key = nextKey(attempt, run, attempt.destination.marksKeys ? markOf(upload_token) : null);
  const { contentType, resumable } = attempt.encoder;
  return { key, contentType, upload_token, resumable };
}

/** Records that another object has a key. The next file has the next generation, or the next number. */
async function skipTakenKey(attempt: ExportAttempt, current: CurrentRun, key: string): Promise<void> {
  const { dependencies, runId, destination } = attempt;
  const { recorder } = dependencies;
  const before = current.run;
  const { next_file, upload } = rangeAt(attempt, before);
  // A file that was planned has used its number.
  const file = upload?.key === key ? next_file - 1 : next_file;
  current.run = await recorder.recordTakenKey(runId, currentAttempt(attempt, before), { file, key });
  const next =
    current.run.generation === before.generation
      ? 'under the next file number'
      : `as generation ${current.run.generation}`;
  await recorder.log(
    current.run,
    runId,
    'WARNING',
    `The key ${destination.nameOf(key)} is taken by an object that this run did not write. It is kept, and the file is exported ${next}.`,
  );
}
