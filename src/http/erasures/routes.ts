import { requestErasure } from '../../decisions/erasures.ts';
import type { Model } from '../../domain/batch_export.ts';
import type { Pool } from '../../journal/database.ts';
import { openJournal } from '../../projections/registry.ts';
import { filesHavePersons } from '../../source/read_ranges.ts';
import type { RowQuery } from '../../source/row_selection.ts';
import { ApiError, notFound } from '../api_error.ts';
import { callerOf } from '../authentication.ts';
import { type ProjectRoutes, teamOf } from '../command_service.ts';
import { offsetPage } from '../paging.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import {
  certifiedErasureSchema,
  erasureBody,
  erasureListQuery,
  erasurePath,
  type ErasureResponse,
  erasureSchema,
} from './schema.ts';

const reads = { config: { scope: 'erasure:read' } } as const;
const writes = { config: { scope: 'erasure:write' } } as const;

const maxFailed = 100;

interface StoredErasure extends ErasureResponse {
  readonly certificate: Readonly<Record<string, unknown>> | null;
}

/** Reads erasures of a project, the newest first. */
async function readErasures(
  pool: Pool,
  teamId: number,
  { id = null, limit = 1, offset = 0 }: { id?: string | null; limit?: number; offset?: number },
): Promise<StoredErasure[]> {
  const { rows } = await pool.query<StoredErasure>(
    `select erasure.id, erasure.status, id_hashes, users.email as requested_by, erasure.created_at, finished_at,
       certificate, json_build_object('exports', searched.exports, 'exports_searched', searched.finished,
         'intervals_searched', searched.intervals, 'rows_searched', searched.rows,
         'intervals_found', found.found, 'intervals_rewritten', found.rewritten,
         'rows_erased', rows_erased, 'objects_removed', objects_removed) as progress,
       coalesce((
         select jsonb_agg(jsonb_build_object('until', null) || object)
         from jsonb_array_elements(erasure.held) object
         where object ->> 'until' is null or (object ->> 'batch_export_id', object ->> 'object') in (
           select batch_export_id::text, key from exportd.destination_objects where held_until is not null)), '[]') as held,
       coalesce((
         select json_agg(json_build_object('batch_export_id', batch_export_id, 'start', data_interval_start,
           'end', data_interval_end, 'error', error))
         from (select * from exportd.erasure_intervals where erasure_id = erasure.id and status = 'Failed'
           order by batch_export_id, data_interval_start limit ${maxFailed}) failed), '[]') as failed
     from exportd.erasures erasure left join exportd.users on users.id = erasure.user_id
     cross join lateral (
       select count(*) as exports, count(*) filter (where searched_until = 'infinity') as finished,
         coalesce(sum(intervals), 0) as intervals, coalesce(sum(rows), 0) as rows
       from exportd.erasure_searches where erasure_id = erasure.id) searched
     cross join lateral (
       select count(*) filter (where rows > 0) as found,
         count(*) filter (where rows > 0 and status = 'Completed') as rewritten
       from exportd.erasure_intervals where erasure_id = erasure.id) found
     where erasure.team_id = $1 and coalesce(erasure.id = $2, true) order by position desc limit $3 offset $4`,
    [teamId, id, limit, offset],
  );
  return rows;
}

/** Rejects an erasure that cannot search every export of the project. @throws ApiError 409 */
async function requireSearchable(pool: Pool, teamId: number): Promise<void> {
  const { rows } = await pool.query<{
    id: string;
    name: string;
    model: Model;
    row_query: RowQuery | null;
  }>(
    `select export.id, export.name, export.model, config.row_query
     from exportd.batch_exports export join exportd.destination_configs config on config.batch_export_id = export.id
     where export.team_id = $1 and exists (
       select from exportd.intervals where batch_export_id = export.id and manifest_run_id is not null)`,
    [teamId],
  );
  for (const { id, name, model, row_query: query } of rows)
    if (!filesHavePersons(model, { query }))
      throw new ApiError(
        409,
        'export_not_searchable',
        `Batch export "${name}" (${id}) cannot be erased from: the query of one of its configs does not select distinct_id and the key of each row, so its files do not say whose rows they have. Nothing was changed.`,
      );
}

/** Erase persons from everything that a project has exported, and read what an erasure has done. */
export const erasureRoutes: ProjectRoutes = (app, { pool, keyRing, settings, erasures, logger }) => {
  const journal = openJournal(pool);

  app.get(
    '/erasures',
    {
      ...reads,
      schema: {
        summary: 'List erasures',
        description: 'The newest first.',
        querystring: erasureListQuery,
        response: { 200: pageOf(erasureSchema), ...errorResponses },
      },
    },
    async (request) => {
      const team_id = teamOf(request);
      const { rows } = await pool.query<{ count: number }>(
        'select count(*) as count from exportd.erasures where team_id = $1',
        [team_id],
      );
      return offsetPage(request, settings, request.query, {
        count: rows[0]?.count ?? 0,
        results: await readErasures(pool, team_id, request.query),
      });
    },
  );

  app.get(
    '/erasures/:id',
    {
      ...reads,
      schema: {
        summary: 'Retrieve an erasure',
        description: 'Its progress and, once it has ended, its certificate.',
        params: erasurePath,
        response: { 200: certifiedErasureSchema, ...errorResponses },
      },
    },
    async (request) => {
      const [found] = await readErasures(pool, teamOf(request), { id: request.params.id });
      if (!found) throw notFound();
      return found;
    },
  );

  app.post(
    '/erasures',
    {
      ...writes,
      schema: {
        summary: 'Erase persons',
        description:
          'Takes the rows of persons out of all files of the project, deletes the old objects, and keeps the persons out of everything that is exported from now on, for as long as the source has them. Other rows stay as they are. It cannot be undone. Read the result with the id.',
        body: erasureBody,
        response: { 202: certifiedErasureSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const team_id = teamOf(request);
      await requireSearchable(pool, team_id);
      const { actor_id: user_id } = callerOf(request);
      const { distinct_ids } = request.body;
      const id = await requestErasure(journal, keyRing, { team_id, user_id, distinct_ids });
      // A reconciler starts it otherwise.
      await erasures.start(id).catch((error: unknown) => {
        logger.warn({ err: error, erasure_id: id }, 'Could not start an erasure yet.');
      });
      const [found] = await readErasures(pool, team_id, { id });
      if (!found) throw notFound();
      return reply.code(202).send({ ...found, certificate: null });
    },
  );
};
