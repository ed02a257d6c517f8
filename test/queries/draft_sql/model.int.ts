import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertShop } from './shop_data.ts';

interface Asked {
  readonly path: string | undefined;
  readonly authorization: string | undefined;
  readonly body: { readonly model: string; readonly messages: readonly { readonly content: string }[] };
}

let api: ApiHarness;
let server: Server;
const asked: Asked[] = [];
/** What the model answers, one after another; the last one again and again. */
let answers: readonly (string | ((response: ServerResponse) => void))[] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { url, headers } = request;
  const body = JSON.parse(await text(request)) as Asked['body'];
  asked.push({ path: url, authorization: headers.authorization, body });
  const next = answers[Math.min(asked.length, answers.length) - 1];
  if (typeof next === 'function') next(response);
  else response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: next } }] }));
}

beforeAll(async () => {
  server = createServer((request, response) => void answer(request, response));
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
  asked.length = 0;
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
  it('are asked for with the names of the project alone, and told what was wrong with them', async () => {
    answers = ['select nothing from events', 'Here it is:\n```sql\nselect uniq(person_id) from events;\n```'];
    const { status, body } = await draft('how many are we', { current_query: 'select 1' });
    expect([status, body]).toEqual([200, { sql: 'select uniq(person_id) from events' }]);
    expect(asked).toMatchObject([
      { path: '/v1/chat/completions', authorization: 'Bearer of the operator', body: { model: 'small' } },
      {},
    ]);
    const [system, user] = asked[0]?.body.messages ?? [];
    expect(system?.content).toContain('purchase_completed');
    expect(system?.content).not.toMatch(/rocket|fuel|Germany|ada@/);
    expect(user?.content).toBe('how many are we\n\nThe current query is:\nselect 1');
    expect(asked[1]?.body.messages.at(-1)?.content).toContain('Unable to resolve field: nothing');
  });

  it('are refused as unclear when the model says so, and for bad prompts without asking it', async () => {
    answers = ['UNCLEAR'];
    const { status, body } = await draft('signups');
    expect([status, body.code, body.attr]).toEqual([400, 'unclear', 'prompt']);
    expect((await draft('x'.repeat(401))).body.code).toBe('too_long');
    expect(asked).toHaveLength(1);
  });

  it('are made by rules after three that do not compile', async () => {
    answers = ['drop table events'];
    expect((await draft('number of signups')).body).toEqual({ sql: byRules });
    expect(asked).toHaveLength(3);
  });

  it.each<readonly [string, (response: ServerResponse) => void]>([
    ['breaks the connection', (response) => response.destroy()],
    ['fails', (response) => response.writeHead(500).end('secret')],
    ['answers something else', (response) => response.end('{"choices": []}')],
    ['redirects', (response) => response.writeHead(307, { location: '/elsewhere' }).end()],
    ['answers without end', (response) => endless(response)],
  ])('are made by rules when the model %s', async (_, behave) => {
    answers = [behave];
    expect((await draft('number of signups')).body).toEqual({ sql: byRules });
    expect(asked).toHaveLength(1);
  });
});

function endless(response: ServerResponse): void {
  const write = (): void => {
    if (!response.destroyed) response.write('x'.repeat(65_536), write);
  };
  write();
}
