import type { FastifyRequest } from 'fastify';
import { readExportsToRetry } from '../decisions/retries.ts';
import { deterministicId } from '../journal/journal.ts';
import { ApiError } from './api_error.ts';
import { callerOf } from './authentication.ts';
import type { SubmissionResult } from './command_service.ts';
import { idempotencyKeyOf, type RouteContext } from './route_context.ts';
import type { RetriedExport } from './schemas/retry_failed.ts';

/** Commands that are submitted at the same time. */
const maxConcurrent = 50;
/** How long each command waits for its outcome at least, in milliseconds: enough to signal its schedule. */
const minTimeoutMs = 1_000;

/**
 * Retries the failed runs of all live exports of the caller's project, with one command for each export that has any.
 * @returns what was started for each of these exports, and the error where it was not
 * @throws ApiError when no command was accepted
 */
export async function retryFailedRuns(
  context: RouteContext,
  request: FastifyRequest,
  since: string | null,
): Promise<RetriedExport[]> {
  const caller = callerOf(request);
  const key = idempotencyKeyOf(request);
  const keyOf = (batchExportId: string) =>
    key === undefined ? undefined : deterministicId('retry_failed', key, batchExportId);
  const ids = await readExportsToRetry(context.pool, caller.project_id, since, keyOf);
  const deadline = performance.now() + context.settings.EXPORTD_COMMAND_TIMEOUT;
  const submit = (batch_export_id: string): Promise<SubmissionResult> =>
    context.commandService.submit({
      name: 'retryFailed',
      caller,
      idempotencyKey: keyOf(batch_export_id),
      request: { path: request.params, body: request.body },
      prepare: () => Promise.resolve({ batch_export_id, body: { since } }),
      timeoutMs: Math.max(minTimeoutMs, deadline - performance.now()),
    });
  const errors: ApiError[] = [];
  const retry = async (id: string): Promise<RetriedExport> => {
    try {
      return toRetriedExport(id, await submit(id));
    } catch (error) {
      // One export that was deleted or cannot be reached must not keep the others from their retries.
      if (!(error instanceof ApiError)) throw error;
      errors.push(error);
      return { batch_export: id, backfill_id: null, runs: null, detail: error.message };
    }
  };
  const retried: RetriedExport[] = [];
  for (let from = 0; from < ids.length; from += maxConcurrent)
    retried.push(...(await Promise.all(ids.slice(from, from + maxConcurrent).map(retry))));
  if (errors[0] && errors.length === ids.length) throw errors[0];
  return retried;
}

const toRetriedExport = (id: string, submitted: SubmissionResult): RetriedExport =>
  submitted.decided
    ? {
        batch_export: id,
        backfill_id: submitted.outcome.backfill_id ?? null,
        runs: submitted.outcome.runs ?? 0,
        detail: null,
      }
    : { batch_export: id, backfill_id: null, runs: null, detail: 'The request is still being applied.' };
