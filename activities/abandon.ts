import type { RunSteps } from '../src/decisions/run_steps.ts';
import type { Destination, UploadNames } from '../src/destination/destination.ts';
import { isActive, type OpenedRun, type RangeAttempt, type RunStatus } from '../src/domain/run.ts';
import { failureFor } from './failures.ts';

/** How long is spent on throwing an upload away that nobody goes on with. */
const abandonTimeoutMs = 5_000;

/** Endings after which nobody goes on with a run's upload; after the others a retry or the continued run may. */
const finalStatuses: readonly RunStatus[] = ['Cancelled', 'Failed', 'Terminated'];

/** Throws an upload away. A failure is not worth failing for: the journal still knows of it. */
export async function abandonUpload(
  destination: Destination,
  { key, upload_id }: Pick<UploadNames, 'key' | 'upload_id'>,
): Promise<void> {
  const signal = AbortSignal.timeout(abandonTimeoutMs);
  await destination.abandonFile(key, upload_id, signal).catch(() => undefined);
}

/**
 * Throws the upload of the attempt's range away if the attempt failed for good. After a passing failure, or the loss of its worker, the
 * next attempt goes on with it; and an attempt whose place another has taken leaves that one's parts alone.
 */
export async function abandonIfOver(
  { runSteps, destination }: { readonly runSteps: RunSteps; readonly destination: Destination },
  runId: string,
  attempt: RangeAttempt,
  failure: { readonly error: unknown; readonly signal: AbortSignal },
): Promise<void> {
  const run = await runSteps.read(runId).catch(() => undefined);
  const upload = run?.ranges[attempt.range]?.upload;
  if (run && upload && isOver(run, attempt, failure)) await abandonUpload(destination, upload);
}

function isOver(
  run: OpenedRun,
  { generation, range, attempt }: RangeAttempt,
  { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
): boolean {
  if (finalStatuses.includes(run.status)) return true;
  if (!isActive(run.status) || run.generation !== generation) return false;
  if (run.ranges[range]?.attempt !== attempt) return false;
  // A cancellation says nothing of who goes on: one by a person is in the run's status, one of its sibling's is not.
  return !signal.aborted && failureFor(error).nonRetryable === true;
}
