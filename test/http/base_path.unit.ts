import { describe, expect, it } from '@jest/globals';
import fastify from 'fastify';
import { SettingsError } from '../../src/config/settings_error.ts';
import { refuseOwnPath } from '../../src/http/plugins/base_path.ts';

/** Starts an application below a path, with routes of each kind. */
async function startBelow(basePath: string): Promise<void> {
  const app = fastify();
  refuseOwnPath(app, basePath);
  for (const path of ['/', '/readyz', '/exports/*', '/console/assets/:name'])
    app.get(path, () => Promise.resolve());
  await app.register(
    (project, _options, done) => {
      project.get('/runs/', () => Promise.resolve());
      done();
    },
    { prefix: '/api/projects/:project_id' },
  );
  try {
    await app.ready();
  } finally {
    await app.close();
  }
}

describe('a base path', () => {
  it.each([
    '/readyz',
    '/exports',
    '/exports/a/b',
    '/console',
    '/api',
    '/api/projects',
    '/api/projects/7/runs',
  ])('%s is refused, because a route has it or begins with it', async (path) => {
    await expect(startBelow(path)).rejects.toThrow(
      new SettingsError(
        `EXPORTD_BASE_URL is invalid: exportd has the path ${path} itself. Choose another, such as https://host/tools/exportd.`,
      ),
    );
  });

  it.each(['', '/tools/exportd', '/api/tools', '/readyz/exportd', '/export', '/api/projects/7/other'])(
    '%s is accepted, because no route can be meant',
    async (path) => {
      await expect(startBelow(path)).resolves.toBeUndefined();
    },
  );
});
