import { sendEmpty, type ProjectRoutes } from '../route_context.ts';
import { errorResponses, noContent } from '../schemas/common.ts';

/** Tells clients whether a key may run queries, before they start one in the background. */
export const queryAuthorizationRoutes: ProjectRoutes = (app) => {
  app.post(
    '/query/check_auth_for_async',
    {
      config: { scope: 'query:read' },
      schema: {
        summary: 'Check auth for async',
        description: '200 for a key that may run queries; no query is run, and none is counted.',
        response: { 200: noContent, ...errorResponses },
      },
    },
    (_request, reply) => {
      sendEmpty(reply);
    },
  );
};
