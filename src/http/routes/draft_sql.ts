import { draftSql } from '../../queries/draft_sql/draft_sql.ts';
import { callerOf } from '../authentication.ts';
import { disconnectSignal } from '../disconnect_signal.ts';
import { rateLimitQueries } from '../rate_limit.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas/common.ts';
import { draftedSqlSchema, draftSqlQuery } from '../schemas/draft_sql.ts';

/** Draft queries in the SQL dialect from plain English. */
export const draftSqlRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings, queries } = context;
  app.get(
    '/query/draft_sql',
    {
      config: { scope: 'query:read' },
      onRequest: (request, reply) => rateLimitQueries(context, request, reply),
      schema: {
        summary: 'Retrieve draft SQL',
        description:
          'Drafts a query in the SQL dialect from `prompt` in plain English, such as "signups per week by country in the last 3 months". The query compiles and is not run. A draft counts against the rate limit of queries. The response is 400 with the code `required`, `too_long` or `unclear` when the prompt is missing, longer than 400 characters or not understood.',
        querystring: draftSqlQuery,
        response: { 200: draftedSqlSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { prompt = null, current_query = null } = request.query;
      const { source, running, executor, logger } = queries;
      const service = { pool, source, running, executor, settings, logger };
      const from = {
        team_id: teamOf(request),
        key_id: callerOf(request).key_id,
        signal: disconnectSignal(reply),
      };
      return { sql: await draftSql(service, { ...from, prompt, current_query }) };
    },
  );
};
