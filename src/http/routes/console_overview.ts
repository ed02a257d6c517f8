import { readOverview } from '../read_models/console/overview.ts';
import { teamOf, type HttpApp, type RouteContext } from '../route_context.ts';
import { overviewSchema, type Overview } from '../schemas/console_overview.ts';
import { errorResponses } from '../schemas/common.ts';

/** Lists every export of the project for the console, in one response. */
export function consoleOverviewRoutes(app: HttpApp, context: RouteContext): void {
  app.get(
    '/console/overview',
    {
      schema: { hide: true, response: { 200: overviewSchema, ...errorResponses } },
      config: { scope: 'batch_export:read' },
    },
    async (request, reply) => {
      const overview = await readOverview(context, teamOf(request));
      // As text, which is sent unchanged: checking a thousand exports against the schema takes longer than reading them.
      return reply
        .type('application/json; charset=utf-8')
        .send(JSON.stringify(overview) as unknown as Overview);
    },
  );
}
