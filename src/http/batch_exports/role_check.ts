import type { FastifyReply, FastifyRequest } from 'fastify';
import { roleCheckJob } from '../../destination/role_check_job.ts';
import { invalid } from '../api_error.ts';
import { startJob, waitForJob } from '../jobs/answer_job.ts';
import { withdrawJob } from '../../jobs/jobs.ts';
import { callerOf } from '../plugins/authentication.ts';
import { disconnectSignal } from '../requests.ts';
import type { RouteContext } from '../route_context.ts';
import type { SealedConfig } from '../../destination/sealed_config.ts';

/** How long a request waits for a worker, in milliseconds. */
const maxWaitMs = 10_000;

/**
 * Has a worker check whether exportd's machine may assume the role of a config. One that none has checked in time is saved:
 * workers check each role again before they assume it.
 * @param owner the export for which the secrets are sealed
 * @throws ApiError 400, or 503 without Temporal
 */
export async function requireAssumableRole(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  owner: string,
  { secrets, ...parameters }: SealedConfig,
): Promise<void> {
  // A role that the keys of the config assume is the owner's own affair.
  if (typeof parameters.config.role_arn !== 'string' || Object.keys(secrets).length > 0) return;
  const { project_id: team_id, actor_id: user_id } = callerOf(request);
  const signal = disconnectSignal(reply);
  const job = await context.shares.tests(request, signal, async () => {
    const started = await startJob(
      context,
      roleCheckJob,
      { team_id, user_id, target: owner, parameters },
      { undone: 'Nothing was saved.', retryAfterSeconds: 5 },
    );
    try {
      return await waitForJob(context, roleCheckJob, started, { maxMs: maxWaitMs, signal });
    } finally {
      await withdrawJob(context.pool, started.id);
    }
  });
  const refused = job?.result?.refused ?? null;
  if (refused !== null) throw invalid(refused, 'destination__config__role_arn');
}
