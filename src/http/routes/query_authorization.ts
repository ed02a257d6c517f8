import { sendEmpty, type ProjectRoutes } from '../route_context.ts';
import { errorResponses, noContent } from '../schemas/common.ts';

/** Check whether a key may run queries, before starting one in the background. */
export const queryAuthorizationRoutes: ProjectRoutes = (app) => {
  app.post(
    '/query/check_auth_for_async',
    {
      config: { scope: 'query:read' },
      schema: {
        summary: 'Check auth for async',
        description:
          'Returns 200 when the key may run queries. Runs no query and does not count against the rate limit.',
        response: { 200: noContent, ...errorResponses },
      },
    },
    (_request, reply) => {
      sendEmpty(reply);
    },
  );
};
