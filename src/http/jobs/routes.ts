import { findJobOfProject } from '../../jobs/jobs.ts';
import { notFound } from '../api_error.ts';
import { callerOf, requireScope } from '../plugins/authentication.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { type JobOperation, toJobResponse } from './answer_job.ts';
import { jobPath, jobSchema } from './schema.ts';

/** Read a job that takes longer than its request has waited. @param operations those whose jobs can be read */
export const jobRoutes =
  (operations: readonly JobOperation[]): ProjectRoutes =>
  (app, { pool }) => {
    const operationOfKind = new Map(operations.map((operation) => [operation.kind.name, operation]));

    app.get(
      '/jobs/:id',
      {
        schema: {
          summary: 'Retrieve a job',
          description:
            'What a response 202 with a job names in `Location`. Poll it until `status` is no longer `pending`. Requires the scope of the operation that started it. It is kept for an hour, a verification as long as its list.',
          params: jobPath,
          response: { 200: jobSchema, ...errorResponses },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const job = await findJobOfProject(pool, caller.project_id, request.params.id);
        // No operation returns the check of a role.
        const operation = job && operationOfKind.get(job.kind);
        if (!operation) throw notFound();
        requireScope(caller, operation.access.config.scope);
        return toJobResponse(operation, job, pool);
      },
    );
  };
