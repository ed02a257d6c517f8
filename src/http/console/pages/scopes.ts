import { administersKeys } from '../../keys/routes.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { errorResponses } from '../../schemas.ts';
import { presetNames, presets, scopeDescriptions, scopes } from '../../scopes.ts';
import { scopesSchema } from './schema.ts';

/** What the form of a new key offers. */
export const scopeRoutes: ProjectRoutes = (app) => {
  app.get(
    '/console/scopes',
    { ...administersKeys, schema: { hide: true, response: { 200: scopesSchema, ...errorResponses } } },
    () => ({
      presets: presetNames.map((name) => ({
        name,
        description: presets[name].description,
        scopes: [...presets[name].scopes],
      })),
      scopes: scopes.map((name) => ({ name, description: scopeDescriptions[name] })),
    }),
  );
};
