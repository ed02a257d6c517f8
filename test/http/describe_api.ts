import { createServerlessApp } from '../../src/http/serverless_app.ts';

/** The OpenAPI document. */
export async function describeApi(): Promise<unknown> {
  const app = await createServerlessApp();
  const { body } = await app.inject('/api/schema');
  await app.close();
  return JSON.parse(body);
}
