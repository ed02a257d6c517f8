import { Registry } from 'prom-client';
import { readSettings } from '../config/settings.ts';
import { createApp, type HttpDependencies } from './app.ts';
import { optionalResources } from './resources.ts';
import type { HttpApp } from './route_context.ts';
import { createLogger } from '../telemetry/logger.ts';

/** The HTTP API without its servers, which its OpenAPI document and its pages do not need. */
export function createServerlessApp(): Promise<HttpApp> {
  const settings = readSettings({
    DATABASE_URL: 'postgres://unused@127.0.0.1:1/none',
    EXPORTD_LOG_LEVEL: 'silent',
  });
  return createApp({
    settings,
    logger: createLogger('server', settings),
    metrics: new Registry(),
    pool: { connect: () => Promise.reject(new Error('No database.')) },
    resources: optionalResources({ settings, running: { interrupt: () => undefined } } as never, {} as never),
  } as unknown as HttpDependencies);
}

/** The OpenAPI document, as JSON. */
export async function readApiDocument(): Promise<string> {
  const app = await createServerlessApp();
  const { body } = await app.inject('/api/schema');
  await app.close();
  return body;
}
