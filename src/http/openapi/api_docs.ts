import swaggerUi from '@fastify/swagger-ui';
import type { HttpApp } from '../route_context.ts';

/** The path of the rendered OpenAPI document. */
const path = '/api/docs';

/** No other host, no inline script and no inline style. The page's icons are `data:` URLs in its style sheet. */
const contentSecurityPolicy = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': ["'self'", 'data:'],
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
};

const styles = `
  body { background: Canvas; }
  .swagger-ui .info { margin: 24px 0; }
  .swagger-ui .scheme-container { box-shadow: none; padding: 12px 0; }
`;

/** Serves the OpenAPI document as a page. Its assets come from the package of Swagger UI. */
export async function addApiDocs(app: HttpApp): Promise<void> {
  await app.register(async (scope) => {
    scope.addHook('onSend', (_request, reply, _payload, done) => {
      void reply.headers({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
      done();
    });
    await scope.register(swaggerUi, {
      routePrefix: path,
      staticCSP: contentSecurityPolicy,
      theme: { title: 'exportd API', css: [{ filename: 'exportd.css', content: styles }] },
      uiConfig: {
        // Without the bar that loads documents of other hosts.
        layout: 'BaseLayout',
        deepLinking: true,
        docExpansion: 'list',
        defaultModelsExpandDepth: 0,
        persistAuthorization: false,
        validatorUrl: null,
      },
      transformSpecification: onlyBelowProjects,
      // The paths are filtered, and what they refer to is not changed.
      transformSpecificationClone: false,
    });
  });
}

/** Every path below `environments` exists below `projects` too. The page shows it once. */
function onlyBelowProjects(document: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const paths = Object.entries(document.paths ?? {}).filter(([url]) => !url.startsWith('/api/environments/'));
  return { ...document, paths: Object.fromEntries(paths) };
}
