import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { METHODS } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { insertEvents } from '../e2e/rows.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { casesOf, effort } from '../setup/effort.ts';
import { fromSetUp } from '../setup/environment.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { expectBorne, serverAt } from '../setup/process_watch.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createProject } from '../../src/http/accounts/projects.ts';

// One server process. A hostile client sends what is endless, slow, wide or deep, beside other users of the server.

let stack: Stack;
/** A key of another project. */
let otherKey: string;
let otherProjectId: number;
/** A key that may send queries. */
let queryKey: string;
let monitoringUrl: string;
/** Connections that never end their request, open beside all other requests. */
let slowClients: { readonly opened: () => number; readonly open: () => number };

/** Enough for responses that are too large: 144 MB without bounds. */
const eventRows = 3;

beforeAll(async () => {
  const { monitoring } = await assignPorts(
    join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`),
    ['monitoring'],
  );
  monitoringUrl = `http://127.0.0.1:${monitoring}`;
  stack = await startStack(
    'hostile-requests',
    {
      EXPORTD_HTTP_REQUEST_TIMEOUT: '5s',
      EXPORTD_DRY_RUN_TIMEOUT: '150s',
      EXPORTD_MONITORING_PORT: String(monitoring),
    },
    { worker: false, v8Options: [] },
  );
  slowClients = openSlowConnections();
  await insertEvents(stack.pool, stack.projectId, minuteAgo(10), eventRows, 600);
  // A property of 1 MB, in every row.
  await stack.pool.query(`update events set properties = jsonb_build_object('big', repeat('x', 1000000))`);
  otherProjectId = (await createProject(stack.pool, { name: 'Others' })).id;
  otherKey = await stack.newKey(['batch_export:read', 'batch_export:write'], otherProjectId);
  queryKey = await stack.newKey(['query:read']);
  // What a server loads and compiles once is neither growth nor silence.
  await preview(wide(`'a'`));
});
afterAll(() => stack.stop());

/** A response, of which at most 8 MB are read. */
interface Response {
  readonly status: number;
  readonly bytes: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

const maxReadBytes = 8_000_000;

async function send(
  path: string,
  body?: unknown,
  { method = 'POST', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Response> {
  const response = await fetch(`${stack.baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${stack.key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    chunks.push(chunk);
    if (bytes > maxReadBytes) break;
  }
  const text = Buffer.concat(chunks).toString();
  const isJson = bytes <= maxReadBytes && text.startsWith('{');
  return {
    status: response.status,
    bytes,
    headers: response.headers,
    body: isJson ? (JSON.parse(text) as Response['body']) : {},
  };
}

const preview = (body: object, action = 'preview') =>
  send(`/api/projects/${stack.projectId}/batch_exports/${action}/`, {
    interval: 'every 5 minutes',
    ...body,
  });

const listOfOthers = () =>
  send(`/api/projects/${otherProjectId}/batch_exports/`, undefined, {
    method: 'GET',
    headers: { authorization: `Bearer ${otherKey}` },
  });

/** What a request does to the server stays within the bounds of silence and memory. */
const expectHarmless = <Result>(action: () => Promise<Result>): Promise<Result> =>
  expectBorne(serverAt(stack.baseUrl), action);

/** A query with the same expression in many columns. */
const wide = (expression: string, columns = 480) => ({
  dialect_query: `select ${Array.from({ length: columns }, (_, index) => `${expression} as c${index}`).join(', ')} from events`,
});
const filtersOf = (filters: readonly object[]) => ({ destination: { type: 'S3', config: { filters } } });
const filters = (count: number) =>
  filtersOf(
    Array.from({ length: count }, () => ({ type: 'event', key: 'v', operator: 'exact', value: 'x' })),
  );
/** In 480 columns a row of 48 MB. Without bounds a preview of such rows takes seconds, and gigabytes of memory. */
const hundredThousand = `repeat('a', 100000)`;
const million = (letter: string) => `repeat('${letter}', 1000000)`;

/** A row of more values than PostgreSQL accepts. */
const wideRow = `(${Array.from({ length: 1_700 }, () => 'event').join(', ')})`;

/** The largest response to any request. */
const maxResponseBytes = 5_000_000;

describe('a preview', () => {
  const allWide = [
    ['repeats a character', wide(hundredThousand)],
    ['pads a string', wide("rightPad('a', 1000000, 'b')", 20)],
    ['replaces characters', wide(`replaceAll(repeat('a', 1000), 'a', repeat('b', 1000))`, 50)],
    ['joins arrays', wide(`arrayStringConcat([${million('a')}, ${million('b')}], ',')`, 15)],
    ['concatenates', wide(`concat(${Array.from({ length: 10 }, () => million('c')).join(', ')})`, 5)],
    ['repeats a property', wide('properties.big', 50)],
    ['selects whole documents', wide('properties', 50)],
    ['selects control characters', wide(`repeat('\\u0001', 1000000)`, 50)],
  ] as const;
  // A value is cut whatever has made it: a text, one of many columns, a document, and what JSON writes in six characters.
  const usualWide = allWide.filter(([name]) => /^(repeats a character|selects)/.test(name));
  it.each(casesOf(usualWide, allWide))('that %s in every column has cut values', async (_, query) => {
    const result = await expectHarmless(() => preview(query));
    expect([result.status, result.body.detail]).toEqual([200, undefined]);
    expect((result.body.rows as unknown[]).length).toBeGreaterThan(0);
    expect(result.bytes).toBeLessThan(maxResponseBytes);
  });

  it.each([
    ['10,000 filters', filters(10_000), null, /at most 10,000 fields/],
    ['101 filters', filters(101), 'destination__config__filters', /at most 100 filters/],
    [
      'rows of 1,700 values',
      { dialect_query: `select event from events where ${wideRow} in (${wideRow})` },
      null,
      /at most 1664 entries/,
    ],
    [
      'an expression of 250 kB as a filter',
      filtersOf([{ type: 'hogql', key: `1 in (${'1, '.repeat(49_000)}1)`.padEnd(250_000) }]),
      'destination__config__filters',
      /at most 16,384 characters/,
    ],
    [
      'filters of 40,000 values',
      filtersOf(
        Array.from({ length: 4 }, () => ({ type: 'event', key: 'v', value: Array(9_999).fill('x') })),
      ),
      'destination__config__filters',
      /at most 10,000 values/,
    ],
    [
      'a query of 16,000 operations',
      { dialect_query: `select event from events where ${"event = 'a' and ".repeat(4_000)}true` },
      'dialect_query',
      /at most 12000 syntax nodes/,
    ],
    [
      'a query of 30,000 parentheses',
      { dialect_query: `select ${'('.repeat(30_000)}event${')'.repeat(30_000)} as e from events` },
      'dialect_query',
      /more than 250 levels deep/,
    ],
    [
      'a query of 32,000 values',
      { dialect_query: `select [${'1,'.repeat(32_000)}1] as v from events` },
      'dialect_query',
      /at most 12000 syntax nodes/,
    ],
  ])('with %s is rejected at once', async (_, body, attr, detail) => {
    const result = await expectHarmless(() => Promise.all(Array.from({ length: 3 }, () => preview(body))));
    for (const { status, body: error } of result)
      expect([status, error.attr, error.detail]).toEqual([400, attr, expect.stringMatching(detail)]);
  });

  it('of the longest query is compiled at once', async () => {
    const column = (index: number) =>
      `concat(properties.a${index}, '-', upper(properties.b${index}), toString(timestamp)) as c${index}`;
    const dialect_query = `select ${Array.from({ length: 450 }, (_, index) => column(index)).join(', ')} from events`;
    const result = await expectHarmless(() => preview({ dialect_query }));
    expect([result.status, result.body.detail]).toEqual([200, undefined]);
  });

  it('of more literals than PostgreSQL selects columns is read', async () => {
    const conditions = Array.from({ length: 2_000 }, (_, index) => `'name ${index}'`);
    const dialect_query = `select event from events where not event in (${conditions.join(', ')})`;
    const response = await preview({ dialect_query });
    expect([response.status, response.body.detail]).toEqual([200, undefined]);
  });

  it('cannot be sent by one key so often that its project has no other', async () => {
    const query = wide(hundredThousand, 50);
    const result = await expectHarmless(() =>
      Promise.all([...Array.from({ length: 20 }, () => preview(query)), listOfOthers()]),
    );
    const statuses = result.slice(0, -1).map(({ status }) => status);
    // Four of them may run or wait, and those that wait for too long are rejected too. One that ends before the last has
    // arrived makes room for another.
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(result.at(-1)?.status).toBe(200);
  });
});

it('an estimate of rows that are too wide says the limit', async () => {
  const result = await expectHarmless(() => preview(wide(hundredThousand), 'estimate'));
  expect([result.status, result.body.attr]).toEqual([400, null]);
  expect(result.body.detail).toMatch(/A row .* 16 MiB/);
});

describe('a result', () => {
  it.each([
    ['one value of 120 MB', `select groupArray(repeat('x', 1000000)) from numbers(120)`, 1],
    ['40 MB, four times', `select repeat('x', 4000) from numbers(10000) limit 10000`, 4],
  ])('of %s is refused while it arrives', async (_, query, times) => {
    const body = { query: { kind: 'DialectQuery', query }, refresh: 'force_blocking' };
    const headers = { authorization: `Bearer ${queryKey}` };
    const ask = () => send(`/api/projects/${stack.projectId}/query/`, body, { headers });
    const results = await expectHarmless(() => Promise.all(Array.from({ length: times }, ask)));
    for (const { status, body: error } of results)
      expect([status, error.code]).toEqual([400, 'result_too_large']);
  });
});

describe('a body', () => {
  const bodyWith = (config: object) => ({
    name: 'Wide',
    interval: 'hour',
    destination: {
      type: 'S3',
      config: {
        bucket_name: 'bucket',
        region: 'us-east-1',
        prefix: 'wide',
        aws_access_key_id: 'id',
        aws_secret_access_key: 'secret',
        ...config,
      },
    },
  });
  const manyFields = () => Object.fromEntries(Array.from({ length: 80_000 }, (_, index) => [`f${index}`, 1]));
  const names = (count: number) => ({
    include_events: Array.from({ length: count }, (_, index) => `e${index}`),
  });

  it.each([
    ['80,000 unknown fields in a config', () => bodyWith(manyFields()), /at most 10,000 fields/],
    ['80,000 unknown fields', manyFields, /at most 10,000 fields/],
    ['80,000 names of events', () => bodyWith(names(80_000)), /at most 50,000 values/],
    ['11,000 names of events', () => bodyWith(names(11_000)), /at most 10,000 items/],
    [
      '1,001 names of events',
      () => bodyWith({ include_events: Array.from({ length: 1_001 }, () => 'e') }),
      /at most 1,000/,
    ],
    [
      '300,000 lists in lists',
      () => `{"x":[${Array.from({ length: 50 }, () => `[${'[],'.repeat(6_000)}[]]`).join(',')}]}`,
      /at most 50,000 values/,
    ],
    ['400,000 brackets', () => '['.repeat(400_000), /JSON|nested/],
  ])('with %s is rejected at once', async (_, create, detail) => {
    const body = create();
    const result = await expectHarmless(() =>
      Promise.all(
        ['', 'check/', 'test/'].map((path) =>
          send(`/api/projects/${stack.projectId}/batch_exports/${path}`, body),
        ),
      ),
    );
    for (const { status, body: error, bytes } of result) {
      expect([status, error.detail]).toEqual([400, expect.stringMatching(detail)]);
      expect(bytes).toBeLessThan(2_000);
    }
  });

  it('of 900,000 chunks is read in turns, and its memory is that of a body', async () => {
    const { port } = new URL(stack.baseUrl);
    const head =
      `POST /api/projects/${stack.projectId}/query/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n` +
      `Authorization: Bearer ${queryKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await expectHarmless(async () => {
      const socket = connect({ port: Number(port), host: '127.0.0.1' });
      socket.write(`${head}1\r\n"\r\n${'1\r\nx\r\n'.repeat(900_000)}1\r\n"\r\n0\r\n\r\n`);
      // On a busy machine it takes longer than a request may.
      return text(socket).catch(() => 'HTTP/1.1 408 ');
    });
    expect(answer).toMatch(/^HTTP\/1.1 40[08] /);
  });
});

describe('patterns', () => {
  const patterns = (count: number, pattern: string) => ({
    name: 'Patterns',
    interval: 'hour',
    destination: {
      type: 'S3',
      config: {
        bucket_name: 'bucket',
        region: 'us-east-1',
        prefix: 'patterns',
        aws_access_key_id: 'id',
        aws_secret_access_key: 'secret',
        filters: [
          { type: 'event', key: 'v', operator: 'regex', value: Array.from({ length: count }, () => pattern) },
        ],
      },
    },
  });
  const check = (body: object) => send(`/api/projects/${stack.projectId}/batch_exports/check/`, body);

  it('of one project leave the control database to the others', async () => {
    const pattern = Array.from({ length: 300 }, (_, index) => `x${index}_2_3[a-z]{1,50}`).join('|');
    const result = await expectHarmless(async () => {
      const checks = Promise.all(Array.from({ length: 22 }, () => check(patterns(100, pattern))));
      const lists = [await listOfOthers(), await listOfOthers(), await listOfOthers()];
      return { checks: await checks, lists };
    });
    // Those that wait for their turn for too long are rejected too.
    for (const { status } of result.checks) expect([400, 429]).toContain(status);
    expect(result.checks.map(({ status }) => status)).toContain(400);
    expect(result.lists.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  it.each([
    ['21 patterns', patterns(21, 'x'), /at most 20 regular expressions/],
    ['a pattern of 1,001 characters', patterns(1, 'x'.repeat(1_001)), /at most 1,000 characters/],
  ])('are limited: %s', async (_, body, detail) => {
    const { status, body: error } = await check(body);
    expect([status, error.detail]).toEqual([400, expect.stringMatching(detail)]);
  });
});

describe('without a key', () => {
  const ofConsole = () => ({ authorization: '', 'x-exportd-console': '1', origin: stack.baseUrl });
  const manyKeys = JSON.stringify(
    Object.fromEntries(Array.from({ length: 70_000 }, (_, index) => [`k${index}`, 1])),
  );

  it('a large body to sign in is rejected before it is read', async () => {
    // The server answers and closes the connection while the client still writes, which may see that before the answer.
    const isClosed = (error: unknown): boolean =>
      error instanceof TypeError &&
      ['EPIPE', 'ECONNRESET'].includes((error.cause as NodeJS.ErrnoException | undefined)?.code ?? '');
    const signIn = () =>
      send('/console/session', manyKeys, { headers: ofConsole() }).catch((error: unknown) => {
        if (isClosed(error)) return undefined;
        throw error;
      });
    const result = await expectHarmless(() => Promise.all(Array.from({ length: 16 }, signIn)));
    const answers = result.filter((answer) => answer !== undefined);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([413]));
    expect(answers[0]?.body.detail).toMatch(/2048 bytes/);
  });

  it('requests with odd methods and paths add no series to the metrics', async () => {
    const paths = [
      '/api/projects',
      '/api/schema',
      '/healthz',
      '/readyz',
      '/console/session',
      '/',
      '/query',
      '/api/docs',
    ];
    for (let index = 0; index < 200; index += 1) paths.push(`/api/nothing/${index}`);
    const read = async () => (await fetch(`${monitoringUrl}/metrics`)).text();
    const odd = METHODS.filter((method) => !['CONNECT', 'GET', 'HEAD', 'TRACE'].includes(method));
    const requestAll = async () => {
      for (const method of odd) for (const path of paths.slice(0, 20)) await sendRaw(method, path);
    };
    await requestAll();
    const text = await read();
    expect(text.length).toBeLessThan(200_000);
    for (const method of ['MKCALENDAR', 'BIND']) expect(text).not.toContain(`method="${method}"`);
    expect(text).toContain('route="unmatched",status="405"');
    expect(text).not.toMatch(/route="(?!unmatched")[^"]*",status="405"/);
  });

  /** fetch sends no such methods. */
  const sendRaw = (method: string, path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(stack.baseUrl);
      const socket = connect({ port: Number(port), host: '127.0.0.1' }, () =>
        socket.end(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
      );
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('close', () => resolve(text));
      socket.on('error', reject);
    });

  it('thousands of requests that are sent at once take turns with those of others, and each is answered', async () => {
    const ofConnection = effort > 1 ? 1_000 : 300;
    const answered = await expectHarmless(() =>
      Promise.all(Array.from({ length: 20 }, () => pipeline('/nothing', ofConnection))),
    );
    expect(answered).toEqual(Array.from({ length: 20 }, () => ofConnection));
  });

  it('20,000 documents that no client reads are not made', async () => {
    const sockets: Socket[] = [];
    await expectHarmless(async () => {
      for (let count = 0; count < 100; count += 1) sockets.push(writeRequests('/api/schema', 200).pause());
      await Promise.all(sockets.map((socket) => once(socket, 'readable')));
    });
    for (const socket of sockets) socket.destroy();
  });

  /** Sends requests at once on a connection. */
  const writeRequests = (path: string, count: number): Socket => {
    const { port } = new URL(stack.baseUrl);
    const socket = connect({ port: Number(port), host: '127.0.0.1' });
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(count));
    return socket;
  };

  /** Sends requests at once, and resolves with the number of responses. */
  const pipeline = async (path: string, count: number): Promise<number> => {
    const socket = writeRequests(path, count);
    let rest = '';
    let answered = 0;
    for await (const chunk of socket) {
      rest += String(chunk);
      const parts = rest.split('HTTP/1.1 404 ');
      answered += parts.length - 1;
      rest = parts.at(-1) ?? '';
      if (answered === count) break;
    }
    return answered;
  };

  it('connections that never end their request are closed', async () => {
    await waitFor(
      () => slowClients.opened() === slowConnections && slowClients.open() === 0,
      () => `all are closed; ${slowClients.open()} of ${slowClients.opened()} are open`,
      60_000,
    );
  });
});

const slowConnections = 200;

function openSlowConnections(): typeof slowClients {
  const { port } = new URL(stack.baseUrl);
  let [opened, open] = [0, 0];
  for (let count = 0; count < slowConnections; count += 1) {
    const socket = connect({ port: Number(port), host: '127.0.0.1' }, () => {
      opened += 1;
      open += 1;
      socket.on('close', () => (open -= 1));
      socket.write(
        `POST /console/session HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nOrigin: ${stack.baseUrl}\r\nX-Exportd-Console: 1\r\n` +
          'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
      );
    });
    socket.resume().on('error', () => undefined);
  }
  return { opened: () => opened, open: () => open };
}
