import { readApiDocument } from '../../src/http/serverless_app.ts';

/** The OpenAPI document. */
export const describeApi = async (): Promise<unknown> => JSON.parse(await readApiDocument());
