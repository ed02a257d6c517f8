import { readOverview } from '../read_models/console/overview.ts';
import { teamOf, type HttpApp, type RouteContext } from '../route_context.ts';
import { overviewQuery, overviewSchema, type Overview } from '../schemas/console_overview.ts';
import { errorResponses } from '../schemas/common.ts';

/** Lists the exports of the project for the console, those that need attention first. */
export function consoleOverviewRoutes(app: HttpApp, context: RouteContext): void {
  app.get(
    '/console/overview',
    {
      schema: {
        hide: true,
        querystring: overviewQuery,
        response: { 200: overviewSchema, ...errorResponses },
      },
      config: { scope: 'batch_export:read' },
    },
    async (request, reply) => {
      const overview = await readOverview(context, teamOf(request), request.query);
      // As text, which is sent unchanged: checking many exports against the schema takes longer than reading them.
      return reply
        .type('application/json; charset=utf-8')
        .send(JSON.stringify(overview) as unknown as Overview);
    },
  );
}
