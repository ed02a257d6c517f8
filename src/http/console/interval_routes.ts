import {
  findVerification,
  listVerifications,
  requestVerification,
  type Verification,
  withdrawVerification,
} from '../../verify/verifications.ts';
import { ApiError, notFound, retryAfter, temporalUnreachable } from '../api_error.ts';
import { callerOf } from '../authentication.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { sourceError } from '../error_handler.ts';
import type { IntervalResponse } from '../intervals/schema.ts';
import {
  disconnectSignal,
  type ProjectRoutes,
  readsExports,
  teamOf,
  writesExports,
} from '../command_service.ts';
import { errorResponses } from '../schemas.ts';
import { locateRow, readIntervalAt, readIntervalDetail } from './interval_detail.ts';
import {
  intervalDetailSchema,
  intervalPath,
  rowLocationQuery,
  rowLocationSchema,
  verificationBody,
  type VerificationResponse,
  verificationSchema,
  verificationsSchema,
} from './schema.ts';

/** What is known of one interval, and which file has a row of it. */
export const intervalDetailRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings } = context;

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export interval',
        description:
          'Everything that exportd knows of one interval: its runs, generations, files and comparisons.',
        params: intervalPath,
        response: { 200: intervalDetailSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id, start } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      return readIntervalDetail(context, batch_export_id, start);
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start/row',
    {
      ...readsExports,
      schema: {
        summary: 'Find an event of an interval',
        description: 'Which file of the current manifest has the event, or why none has.',
        params: intervalPath,
        querystring: rowLocationQuery,
        response: { 200: rowLocationSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, start } = request.params;
      const { team_id } = await requireBatchExport(pool, teamOf(request), batch_export_id);
      const interval = await readIntervalAt(pool, batch_export_id, start);
      const timeout = AbortSignal.timeout(settings.EXPORTD_DRY_RUN_TIMEOUT);
      const signal = AbortSignal.any([disconnectSignal(reply), timeout]);
      try {
        return await locateRow(context, { batch_export_id, team_id }, interval, request.query.uuid, signal);
      } catch (error) {
        if (timeout.aborted) throw notFoundInTime(settings.EXPORTD_DRY_RUN_TIMEOUT);
        throw sourceError(error) ?? error;
      }
    },
  );
};

const notFoundInTime = (timeoutMs: number): ApiError =>
  new ApiError(
    503,
    'source_unreachable',
    `The source did not find the row within ${timeoutMs / 1_000} seconds. Retry later.`,
    retryAfter(5),
  );

const retryAfterSeconds = 30;
/** The findings and notes of a response. */
const maxItems = 50;

/** Verify an interval on a worker, and read what it found. */
export const verificationRoutes: ProjectRoutes = (app, context) => {
  const { pool, verifications, logger } = context;

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
      const found = await listVerifications(pool, batch_export_id, interval);
      return { results: found.map(toVerificationResponse) };
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/intervals/:start/verifications',
    {
      ...writesExports,
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
      const id = await requestVerification(pool, { ...interval, batch_export_id, team_id, user_id, deep });
      if (id === null)
        throw new ApiError(
          429,
          'too_many_verifications',
          'Other verifications are still running. Repeat the request when they have ended.',
          retryAfter(retryAfterSeconds),
        );
      await verifications.start(id).catch(async (error: unknown) => {
        logger.warn({ err: error, verification_id: id }, 'Could not start a verification.');
        await withdrawVerification(pool, id);
        throw temporalUnreachable('Nothing was verified.', retryAfterSeconds);
      });
      const found = await findVerification(pool, id);
      if (!found) throw notFound();
      return reply.code(202).send(toVerificationResponse(found));
    },
  );
};

const boundsOf = ({ data_interval_start: start, data_interval_end: end }: IntervalResponse) => ({
  start,
  end,
});

const toVerificationResponse = (verification: Verification): VerificationResponse => {
  const { id, deep, status, error, created_at, finished_at, report } = verification;
  return {
    id,
    deep,
    status,
    error:
      status === 'failed'
        ? (error ?? 'No worker has finished it in time. Check that the workers run.')
        : null,
    created_at,
    finished_at,
    report: report && {
      ok: report.ok,
      rows: report.totals.rows,
      files: report.totals.files,
      bytes: report.totals.bytes,
      missing: report.totals.missing,
      duplicate: report.totals.duplicate,
      unexpected: report.totals.unexpected,
      mismatched: report.totals.mismatched,
      findings: report.findings
        .slice(0, maxItems)
        .map(({ kind, object, count, detail, rows }) => ({ kind, object, count, detail, rows: [...rows] })),
      notes: report.notes.slice(0, maxItems).map(({ detail }) => detail),
    },
  };
};
