import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { Destination, UploadReference } from '../destination/destination.ts';
import { isActiveStatus, type ExistingRun, type RangeAttempt, type RunStatus } from '../domain/run.ts';
import { classifyError } from '../failures/classify_error.ts';

/** How long is spent on throwing an upload away that nobody goes on with. */
const abortTimeoutMs = 5_000;

/** Endings after which nobody goes on with a run's upload; after the others a retry or the continued run may. */
const finalStatuses: readonly RunStatus[] = ['Cancelled', 'Failed', 'Terminated'];

/** Throws an upload away. A failure is not worth failing for: the journal still knows of it. */
export async function tryAbortUpload(
  destination: Destination,
  { key, upload_id }: Pick<UploadReference, 'key' | 'upload_id'>,
): Promise<void> {
  const signal = AbortSignal.timeout(abortTimeoutMs);
  await destination.abortUpload(key, upload_id, signal).catch(() => undefined);
}

/**
 * Throws the upload of the attempt's range away if the attempt failed for good. After a passing failure, or the loss of its worker, the
 * next attempt goes on with it; and an attempt whose place another has taken leaves that one's parts alone.
 */
export async function abortAfterPermanentFailure(
  { recorder, destination }: { readonly recorder: RunRecorder; readonly destination: Destination },
  runId: string,
  attempt: RangeAttempt,
  failure: { readonly error: unknown; readonly signal: AbortSignal },
): Promise<void> {
  const run = await recorder.read(runId).catch(() => undefined);
  const upload = run?.ranges[attempt.range]?.upload;
  if (run && upload && isOver(run, attempt, failure)) await tryAbortUpload(destination, upload);
}

function isOver(
  run: ExistingRun,
  { generation, range, attempt }: RangeAttempt,
  { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
): boolean {
  if (finalStatuses.includes(run.status)) return true;
  if (!isActiveStatus(run.status) || run.generation !== generation) return false;
  if (run.ranges[range]?.attempt !== attempt) return false;
  // A cancellation says nothing of who goes on: one by a person is in the run's status, one of its sibling's is not.
  return !signal.aborted && classifyError(error).permanent;
}
