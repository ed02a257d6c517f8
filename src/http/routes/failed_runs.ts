import { resolveListTimes } from '../list_times.ts';
import { retryFailedRuns } from '../retry_failed.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas/common.ts';
import { retryFailedBody, retryFailedSchema } from '../schemas/retry_failed.ts';

/** Retry the failed runs of a project. */
export const failedRunRoutes: ProjectRoutes = (app, context) => {
  app.post(
    '/batch_exports/retry_failed',
    {
      config: { scope: 'batch_export:write' },
      schema: {
        summary: 'Retry failed runs of all batch exports',
        description:
          'After a fault was fixed: exports each interval of the project again whose newest run is Failed, ' +
          'FailedRetryable or TimedOut, paused exports included, with one backfill for each export. Runs that are held ' +
          'because rows are missing in the source are left out.',
        body: retryFailedBody,
        response: { 200: retryFailedSchema, 202: retryFailedSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { since } = await resolveListTimes(context.pool, teamOf(request), { since: request.body.since });
      const retried = await retryFailedRuns(context, request, since ? new Date(since).toISOString() : null);
      // Another run of these intervals has been created since.
      const results = retried.filter((one) => one.runs !== 0);
      const runs = results.reduce((sum, one) => sum + (one.runs ?? 0), 0);
      const pending = results.some((one) => one.runs === null);
      return reply.code(pending ? 202 : 200).send({ runs, results });
    },
  );
};
