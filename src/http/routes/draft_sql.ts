import { draftSql } from '../../queries/draft_sql/draft_sql.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas/common.ts';
import { draftedSqlSchema, draftSqlQuery } from '../schemas/draft_sql.ts';

/** Drafts queries of the dialect from plain English. */
export const draftSqlRoutes: ProjectRoutes = (app, { pool, settings, queries }) => {
  app.get(
    '/query/draft_sql',
    {
      config: { scope: 'query:read' },
      schema: {
        summary: 'Retrieve draft SQL',
        description:
          'A query of the dialect for what `prompt` says in plain English, such as "signups per week by country in the last 3 months". It compiles, and is not run. A prompt that is missing, has more than 400 characters or cannot be understood is 400 with the code `required`, `too_long` or `unclear`.',
        querystring: draftSqlQuery,
        response: { 200: draftedSqlSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { prompt = null, current_query = null } = request.query;
      const { source, logger } = queries;
      const service = { pool, source, settings, logger };
      return { sql: await draftSql(service, { team_id: teamOf(request), prompt, current_query }) };
    },
  );
};
