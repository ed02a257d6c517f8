import { readOverview } from '../read_models/console/overview.ts';
import { teamOf, type HttpApp, type RouteContext } from '../route_context.ts';
import { overviewSchema } from '../schemas/console_overview.ts';
import { errorResponses } from '../schemas/common.ts';

/** Lists every export of the project for the console, in one response. */
export function consoleOverviewRoutes(app: HttpApp, context: RouteContext): void {
  app.get(
    '/console/overview',
    {
      schema: { hide: true, response: { 200: overviewSchema, ...errorResponses } },
      config: { scope: 'batch_export:read' },
    },
    (request) => readOverview(context, teamOf(request)),
  );
}
