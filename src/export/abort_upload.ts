import type { RunRecorder } from '../decisions/run_recorder/index.ts';
import type { Destination } from '../destination/destination.ts';
import {
  isActiveStatus,
  type ExistingRun,
  type OpenUpload,
  type RangeAttempt,
  type RunStatus,
} from '../domain/run.ts';
import { classifyError } from '../failures/classify_error.ts';

const abortTimeoutMs = 5_000;

/** Statuses after which nothing resumes the run's upload. After the others, a retry or the continued run may. */
const finalStatuses: readonly RunStatus[] = ['Cancelled', 'Failed', 'Terminated'];

/**
 * Aborts an upload; a file that is written in one request has none. Errors are ignored, since the maintenance aborts what
 * the journal still lists.
 */
export async function tryAbortUpload(
  destination: Destination,
  { key, upload_id }: Pick<OpenUpload, 'key' | 'upload_id'>,
): Promise<void> {
  if (upload_id === null) return;
  const signal = AbortSignal.timeout(abortTimeoutMs);
  await destination.abortUpload(key, upload_id, signal).catch(() => undefined);
}

/**
 * Aborts the upload of the attempt's range if nothing will resume it: the run has ended, or the attempt failed with a
 * permanent error. After a transient error the next attempt resumes it. A superseded attempt leaves it alone, since it
 * belongs to the newer one.
 */
export async function abortAfterPermanentFailure(
  { recorder, destination }: { readonly recorder: RunRecorder; readonly destination: Destination },
  runId: string,
  attempt: RangeAttempt,
  failure: { readonly error: unknown; readonly signal: AbortSignal },
): Promise<void> {
  const run = await recorder.read(runId).catch(() => undefined);
  const upload = run?.ranges[attempt.range]?.upload;
  if (run && upload && isPermanent(run, attempt, failure)) await tryAbortUpload(destination, upload);
}

function isPermanent(
  run: ExistingRun,
  { generation, range, attempt }: RangeAttempt,
  { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
): boolean {
  if (finalStatuses.includes(run.status)) return true;
  if (!isActiveStatus(run.status) || run.generation !== generation) return false;
  if (run.ranges[range]?.attempt !== attempt) return false;
  // An aborted signal proves nothing: a user's cancellation is in the run's status, but a failed sibling range cancels too.
  return !signal.aborted && classifyError(error).permanent;
}
