import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertShop } from './shop_data.ts';

interface ModelRequest {
  readonly path: string | undefined;
  readonly authorization: string | undefined;
  readonly body: { readonly model: string; readonly messages: readonly { readonly content: string }[] };
}

let api: ApiHarness;
let server: Server;
const requests: ModelRequest[] = [];
/** The replies of the model in order; the last one is repeated. */
let replies: readonly (string | ((response: ServerResponse) => void))[] = [];

async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url, headers } = request;
  const body = JSON.parse(await text(request)) as ModelRequest['body'];
  requests.push({ path: url, authorization: headers.authorization, body });
  const next = replies[Math.min(requests.length, replies.length) - 1];
  if (typeof next === 'function') next(response);
  else response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: next } }] }));
}

beforeAll(async () => {
  server = createServer((request, response) => void handleRequest(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  api = await openApiHarness({
    EXPORTD_DRAFT_SQL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`,
    EXPORTD_DRAFT_SQL_MODEL: 'small',
    EXPORTD_DRAFT_SQL_API_KEY: 'of the operator',
    EXPORTD_DRAFT_SQL_TIMEOUT: '60s',
  });
  await insertShop(api.database.pool, api.projectId, api.otherProjectId);
});
beforeEach(() => {
  requests.length = 0;
});
afterAll(async () => {
  await api.close();
  server.closeAllConnections();
  server.close();
});

const draft = (prompt: string, more: Readonly<Record<string, string>> = {}) =>
  api.call(
    'GET',
    `/api/projects/${api.projectId}/query/draft_sql?${new URLSearchParams({ prompt, ...more }).toString()}`,
  );
const byRules = `SELECT count() AS total FROM events WHERE event = 'signed_up'`;

describe('Drafts by a language model', () => {
  it('are requested with the names of the project alone, and errors are sent back', async () => {
    replies = ['select nothing from events', 'Here it is:\n```sql\nselect uniq(person_id) from events;\n```'];
    const { status, body } = await draft('how many are we', { current_query: 'select 1' });
    expect([status, body]).toEqual([200, { sql: 'select uniq(person_id) from events' }]);
    expect(requests).toMatchObject([
      { path: '/v1/chat/completions', authorization: 'Bearer of the operator', body: { model: 'small' } },
      {},
    ]);
    const [system, user] = requests[0]?.body.messages ?? [];
    expect(system?.content).toContain('purchase_completed');
    expect(system?.content).not.toMatch(/rocket|fuel|Germany|ada@/);
    expect(user?.content).toBe('how many are we\n\nThe current query is:\nselect 1');
    expect(requests[1]?.body.messages.at(-1)?.content).toContain('Unable to resolve field: nothing');
  });

  it('are rejected as unclear if the model says so, and bad prompts without calling it', async () => {
    replies = ['UNCLEAR'];
    const { status, body } = await draft('signups');
    expect([status, body.code, body.attr]).toEqual([400, 'unclear', 'prompt']);
    expect((await draft('x'.repeat(401))).body.code).toBe('too_long');
    expect(requests).toHaveLength(1);
  });

  it('are made by rules after three queries that do not compile', async () => {
    replies = ['drop table events'];
    expect((await draft('number of signups')).body).toEqual({ sql: byRules });
    expect(requests).toHaveLength(3);
  });

  it('have no semicolons at their end, however many and however far apart', async () => {
    replies = [`select 1${';'.repeat(1_000)}${' '.repeat(50_000)};`];
    expect((await draft('one')).body).toEqual({ sql: 'select 1' });
    replies = [`select '${' '.repeat(50_000)}' as spaces`];
    requests.length = 0;
    expect((await draft('spaces')).body).toEqual({ sql: replies[0] });
  });

  it.each<readonly [string, (response: ServerResponse) => void]>([
    ['breaks the connection', (response) => response.destroy()],
    ['fails', (response) => response.writeHead(500).end('secret')],
    ['replies in another format', (response) => response.end('{"choices": []}')],
    ['redirects', (response) => response.writeHead(307, { location: '/elsewhere' }).end()],
    [
      'replies with more than any query',
      (response) =>
        response.end(
          JSON.stringify({ choices: [{ message: { content: `select 1 ${' '.repeat(65_536)}` } }] }),
        ),
    ],
    ['replies without end', (response) => endless(response)],
  ])('are made by rules if the model %s', async (_, behave) => {
    replies = [behave];
    expect((await draft('number of signups')).body).toEqual({ sql: byRules });
    expect(requests).toHaveLength(1);
  });
});

function endless(response: ServerResponse): void {
  const write = (): void => {
    if (!response.destroyed) response.write('x'.repeat(65_536), write);
  };
  write();
}
