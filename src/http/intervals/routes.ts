import type { FastifyRequest } from 'fastify';
import type { Pool } from '../../journal/database.ts';
import { selectionOfConfig } from '../../destination/config_versions.ts';
import { manifestFolder } from '../../destination/keys.ts';
import { readingRecipes } from '../../reading/reading_recipes.ts';
import { fileColumns } from '../../source/row_selection.ts';
import { type LogLevel, logLevels } from '../../journal/journal.ts';
import { invalid } from '../api_error.ts';
import { backfillsPath } from '../backfills/schema.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { batchExportPath } from '../batch_exports/schema.ts';
import { countRows, offsetPage } from '../paging.ts';
import { parseChoices, readsExports, teamOf } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { requireRun } from '../runs/read_model.ts';
import { runPath } from '../runs/schema.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import { readIntervalPage, readManifestPage } from './read_model.ts';
import {
  intervalSchema,
  intervalsQuery,
  intervalStatuses,
  type LogLineResponse,
  logLineSchema,
  type LogsQuery,
  logsQuery,
  manifestSchema,
  manifestsQuery,
  readingSchema,
  runLogsQuery,
} from './schema.ts';
import { resolveListTimes } from '../list_times.ts';
import { withParameters } from '../request_urls.ts';

/** List the interval ledger of an export. */
export const intervalRoutes: ProjectRoutes = (app, { settings, pool }) => {
  app.get(
    '/batch_exports/:batch_export_id/intervals',
    {
      ...readsExports,
      schema: {
        summary: 'List batch export intervals',
        description:
          'What exportd knows of each interval: its status, its current manifest, and its last comparison with the ' +
          'source. Intervals without runs are listed as ranges. Newest first.',
        params: backfillsPath,
        querystring: intervalsQuery,
        response: { 200: pageOf(intervalSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const { status, ...query } = await resolveListTimes(pool, teamOf(request), request.query);
      const statuses = parseChoices('status', status, intervalStatuses);
      const page = await readIntervalPage(pool, batch_export_id, { ...query, statuses });
      const urlOf = (cursor: string | null) => cursor && withParameters(request, settings, { cursor });
      return {
        count: page.count,
        next: urlOf(page.next),
        previous: urlOf(page.previous),
        results: page.intervals,
      };
    },
  );
};

/** List the current manifests of an export, and say how its files are read. */
export const readingRoutes: ProjectRoutes = (app, { settings, pool, source }) => {
  app.get(
    '/batch_exports/:batch_export_id/manifests',
    {
      ...readsExports,
      schema: {
        summary: 'List batch export manifests',
        description:
          'The current manifest of each exported interval, in the order of completion, the oldest first. An interval that is ' +
          'exported again comes again, with a higher generation: its files replace those of its former manifest.',
        params: backfillsPath,
        querystring: manifestsQuery,
        response: { 200: pageOf(manifestSchema), ...errorResponses },
      },
    },
    async (request) => {
      const found = await requireBatchExport(pool, teamOf(request), request.params.batch_export_id);
      const { since } = await resolveListTimes(pool, teamOf(request), { since: request.query.since });
      const page = await readManifestPage(pool, found, { ...request.query, since });
      return {
        count: page.count,
        next: page.next && withParameters(request, settings, { cursor: page.next }),
        previous: null,
        results: page.manifests,
      };
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/reading',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve how the files of a batch export are read',
        description:
          'Programs that read its current files, filled in with bucket, prefix, format and columns. They follow the manifests.',
        params: backfillsPath,
        response: { 200: readingSchema, ...errorResponses },
      },
    },
    async (request) => {
      const found = await requireBatchExport(pool, teamOf(request), request.params.batch_export_id);
      const { id, model, config } = found;
      const columns = fileColumns(source.columns(model, selectionOfConfig(found)));
      const recipes = readingRecipes({ id, model, columns, config });
      const { bucket_name, prefix } = config as { bucket_name: string; prefix: string };
      return { bucket_name, manifests: manifestFolder(prefix, id), recipes };
    },
  );
};

/** A page of an export's log, newest first. */
async function listLogLines(
  pool: Pool,
  batchExportId: string,
  query: Omit<LogsQuery, 'level' | 'instance_id'> & { readonly levels: readonly LogLevel[] | undefined },
): Promise<{ count: number; results: LogLineResponse[] }> {
  const condition = `batch_export_id = $1
    and ($2::text[] is null or level = any($2))
    and ($3::timestamptz is null or timestamp >= $3::timestamptz + interval '1 millisecond')
    and ($4::timestamptz is null or timestamp < $4)
    and ($5::text is null or strpos(lower(message), lower($5)) > 0)
    and ($6::uuid is null or run_id = $6)`;
  const values = [
    batchExportId,
    query.levels ?? null,
    query.after ?? null,
    query.before ?? null,
    query.search ?? null,
    query.run_id ?? null,
  ];
  const count = await countRows(pool, `from exportd.log_lines where ${condition}`, values);
  const { rows } = await pool.query<LogLineResponse>(
    `select timestamp, level, message, run_id as instance_id, batch_export_id as log_source_id
     from exportd.log_lines where ${condition} order by timestamp desc, id desc limit $7 offset $8`,
    [...values, query.limit, query.offset],
  );
  return { count, results: rows };
}

/** Read the log of a batch export, or of one of its runs. */
export const logRoutes: ProjectRoutes = (app, { pool, settings }) => {
  const readLog = async (request: FastifyRequest, batchExportId: string, given: LogsQuery) => {
    const {
      level,
      instance_id,
      run_id = instance_id,
      ...query
    } = await resolveListTimes(pool, teamOf(request), given);
    if (instance_id !== undefined && run_id !== instance_id)
      throw invalid('instance_id and run_id are one parameter, and differ. Send one of them.', 'instance_id');
    const levels = parseChoices('level', level, logLevels, (text) => text.toUpperCase());
    const lines = await listLogLines(pool, batchExportId, { ...query, run_id, levels });
    return offsetPage(request, settings, query, lines);
  };
  const response = { 200: pageOf(logLineSchema), ...errorResponses };

  app.get(
    '/batch_exports/:id/logs',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export logs',
        params: batchExportPath,
        querystring: logsQuery,
        response,
      },
    },
    async (request) => {
      const { id } = await requireBatchExport(pool, teamOf(request), request.params.id);
      return readLog(request, id, request.query);
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/runs/:id/logs',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export run logs',
        params: runPath,
        querystring: runLogsQuery,
        response,
      },
    },
    async (request) => {
      const { batch_export_id, id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      await requireRun(pool, { batch_export_id, id });
      return readLog(request, batch_export_id, { ...request.query, run_id: id });
    },
  );
};
