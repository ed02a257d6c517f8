import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  ApiError,
  type BatchExport,
  type Client,
  type ClientOptions,
  ConnectionError,
  createClient,
  ExportdError,
} from '../../src/client/client.ts';
import { scopes } from '../../src/http/scopes.ts';
import { type ApiHarness, exportBody, openApiHarness } from '../http/api_harness.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';

let api: ApiHarness;
let baseUrl: string;
const connect = (more: ClientOptions = {}): Client =>
  createClient({ baseUrl, key: api.key, project: api.projectId, ...more });
const ids: string[] = [];
beforeAll(async () => {
  api = await openApiHarness();
  baseUrl = `${await api.listen()}/`;
  for (const name of ['one', 'two', 'three']) ids.unshift(await api.createExport({ name }));
});
afterAll(() => api.close());

/** How a request fails. */
const failureOf = async (request: Promise<unknown>): Promise<unknown> =>
  request.catch((error: unknown) => error);

describe('the client', () => {
  it('reads what the types of the document say', async () => {
    const found: BatchExport = await connect().get('/batch_exports/{id}', { path: { id: ids[0] ?? '' } });
    expect([found.name, found.destination.type]).toEqual(['three', 'S3']);
    const changed = await connect().patch('/batch_exports/{id}', {
      path: { id: found.id },
      body: { name: 'third' },
    });
    expect(changed).toMatchObject({ name: 'third' });
    expect(
      await connect().delete('/batch_exports/{id}', { path: { id: await api.createExport() } }),
    ).toBeNull();
  });

  it('reads the pages of a list as its items are asked for', async () => {
    const urls: string[] = [];
    const client = connect({
      fetch: (url, init) => {
        urls.push(url as string);
        return fetch(url, init);
      },
    });
    const read: string[] = [];
    for await (const { id } of client.list('/batch_exports', { query: { limit: 1 } })) {
      read.push(id);
      expect(urls.length).toBe(read.length);
    }
    expect(read).toEqual(ids);
    for await (const { id } of client.list('/batch_exports', { query: { limit: 2 } })) read.push(id);
    expect(read).toEqual([...ids, ...ids]);
    // The URLs of pages are below the URL that the client knows.
    expect(urls.filter((url) => !url.startsWith(baseUrl))).toEqual([]);
  });

  it('reads pages by cursor, of strange ids and of several values', async () => {
    const path = { batch_export_id: ids[0] ?? '' };
    const runs = connect().list('/batch_exports/{batch_export_id}/runs', {
      path,
      query: { status: ['Failed'] },
    });
    expect(await runs.next()).toEqual({ done: true, value: undefined });
    expect(
      await failureOf(connect().get('/query/{id}', { path: { id: '../batch_exports?#' } })),
    ).toMatchObject({
      status: 404,
    });
  });

  it('throws the code and the field of an error', async () => {
    const body = { ...exportBody(), interval: 'sometimes', model: 'events' as const };
    const error = await failureOf(connect().post('/batch_exports', { body }));
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toBeInstanceOf(ExportdError);
    expect(error).toMatchObject({ status: 400, code: 'invalid_input', attr: 'interval', name: 'ApiError' });
    expect(await failureOf(connect({ key: 'exk_wrong' }).get('/batch_exports'))).toMatchObject({
      status: 401,
      code: 'authentication_failed',
      attr: null,
    });
  });

  it('applies a command once that is sent twice with a key', async () => {
    const body = exportBody({ name: 'once' });
    const create = () =>
      connect().request('POST', 'batch_exports/', {
        body,
        idempotencyKey: 'once',
      });
    const [first, second] = [await create(), await create()];
    expect(second).toEqual(first);
    expect(first.location).toContain('/batch_exports/');
    await connect().delete('/batch_exports/{id}', { path: { id: (first.body as { id: string }).id } });
  });

  it('says what is not exportd, and what cannot be reached', async () => {
    const unreachable = await failureOf(connect({ baseUrl: 'http://127.0.0.1:1' }).get('/batch_exports'));
    expect(unreachable).toBeInstanceOf(ConnectionError);
    expect(unreachable).toMatchObject({ status: 0, code: 'unreachable' });
    expect(await failureOf(connect().request('GET', '/console/nothing?'))).toMatchObject({ status: 404 });
    const other = connect({ fetch: () => Promise.resolve(new Response('<html>')) });
    expect(await failureOf(other.get('/batch_exports'))).toMatchObject({ status: 200, code: 'not_exportd' });
    const aborted = AbortSignal.abort();
    expect(await failureOf(connect().get('/batch_exports', { signal: aborted }))).toMatchObject({
      name: 'AbortError',
    });
  });

  it('finds the only project of a key', async () => {
    const { results } = await connect({ project: undefined }).get('/batch_exports');
    expect(results.map(({ id }) => id)).toEqual(ids);
    const { key } = await createKey(api.database.pool, {
      user_id: api.userId,
      project_ids: [api.projectId, api.otherProjectId],
      scopes,
    });
    const several = { key, project: undefined };
    expect(await failureOf(connect(several).get('/batch_exports'))).toMatchObject({
      code: 'project_required',
    });
    const project = () => Promise.resolve(api.otherProjectId);
    expect((await connect({ key, project }).get('/batch_exports')).results).toEqual([]);
  });
});
