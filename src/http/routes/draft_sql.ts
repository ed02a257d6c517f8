import { draftSql } from '../../queries/draft_sql/draft_sql.ts';
import { teamOf, type ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas/common.ts';
import { draftedSqlSchema, draftSqlQuery } from '../schemas/draft_sql.ts';

/** Draft queries in the SQL dialect from plain English. */
export const draftSqlRoutes: ProjectRoutes = (app, { pool, settings, queries }) => {
  app.get(
    '/query/draft_sql',
    {
      config: { scope: 'query:read' },
      schema: {
        summary: 'Retrieve draft SQL',
        description:
          'Drafts a query in the SQL dialect from `prompt` in plain English, such as "signups per week by country in the last 3 months". The query compiles and is not run. The response is 400 with the code `required`, `too_long` or `unclear` when the prompt is missing, longer than 400 characters or not understood.',
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
