import { findJob, type JobOf, listJobs } from '../../jobs/jobs.ts';
import type { VerificationReport } from '../../verify/report.ts';
import { verificationJob } from '../../verify/verification_job.ts';
import { ApiError, notFound, retryAfter } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import type { IntervalResponse } from '../intervals/schema.ts';
import { errorOfJob, type JobOperation, referToJob, startJob } from '../jobs/answer_job.ts';
import { readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { readIntervalAt } from '../intervals/interval_detail.ts';
import { intervalPath } from '../intervals/detail_schema.ts';
import {
  verificationBody,
  type VerificationResponse,
  verificationSchema,
  verificationsSchema,
} from './schema.ts';

const retryAfterSeconds = 30;
/** The findings and notes of a response. */
const maxItems = 50;

type ReportResponse = NonNullable<VerificationResponse['report']>;

/** The body of its job has the report alone. */
export const verificationOperation: JobOperation<object, VerificationReport, ReportResponse> = {
  kind: verificationJob,
  access: writesExports,
  toResponse: toReportResponse,
};

/** Verify an interval on a worker, and read what it found. */
export const verificationRoutes: ProjectRoutes = (app, context) => {
  const { pool } = context;

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start/verifications',
    {
      ...readsExports,
      schema: {
        summary: 'List verifications of an interval',
        description: 'The newest first.',
        params: intervalPath,
        response: { 200: verificationsSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id, start } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const interval = boundsOf(await readIntervalAt(pool, batch_export_id, start));
      const found = await listJobs(pool, verificationJob, {
        target: batch_export_id,
        parameters: interval,
      });
      return { results: found.map(toVerificationResponse) };
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/intervals/:start/verifications',
    {
      ...verificationOperation.access,
      schema: {
        summary: 'Verify an interval',
        description:
          'A worker compares the files of the interval with the source, as `exportd verify` does. Read the result with the list.',
        params: intervalPath,
        body: verificationBody,
        response: { 202: verificationSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, start } = request.params;
      const team_id = teamOf(request);
      await requireBatchExport(pool, team_id, batch_export_id);
      const interval = boundsOf(await readIntervalAt(pool, batch_export_id, start));
      const { actor_id: user_id } = callerOf(request);
      const deep = request.body.deep ?? false;
      const { id } = await startJob(
        context,
        verificationJob,
        { team_id, user_id, target: batch_export_id, parameters: { ...interval, deep } },
        { busy: tooMany, undone: 'Nothing was verified.', retryAfterSeconds },
      );
      const found = await findJob(pool, verificationJob, id);
      if (!found) throw notFound();
      referToJob(request, reply, context.settings, id);
      return toVerificationResponse(found);
    },
  );
};

const tooMany = (): ApiError =>
  new ApiError(
    429,
    'too_many_verifications',
    'Other verifications are still running. Repeat the request when they have ended.',
    retryAfter(retryAfterSeconds),
  );

const boundsOf = ({ data_interval_start: start, data_interval_end: end }: IntervalResponse) => ({
  start,
  end,
});

const toVerificationResponse = (job: JobOf<typeof verificationJob>): VerificationResponse => {
  const { id, parameters, status, created_at, finished_at, result } = job;
  return {
    id,
    deep: parameters.deep,
    status,
    error: errorOfJob(job),
    created_at,
    finished_at,
    report: result && toReportResponse(result),
  };
};

function toReportResponse({ ok, totals, findings, notes }: VerificationReport): ReportResponse {
  const { rows, files, bytes, missing, duplicate, unexpected, mismatched } = totals;
  return {
    ok,
    rows,
    files,
    bytes,
    missing,
    duplicate,
    unexpected,
    mismatched,
    findings: findings
      .slice(0, maxItems)
      .map(({ kind, object, count, detail, rows }) => ({ kind, object, count, detail, rows: [...rows] })),
    notes: notes.slice(0, maxItems).map(({ detail }) => detail),
  };
}
