import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage, request as sendRequest, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { scopes } from '../../src/http/scopes.ts';
import { insertEvents } from '../e2e/rows.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { expectWithinLimits, serverAt, watchProcess } from '../setup/process_watch.ts';
import { programPath } from '../setup/programs.ts';
import { createUser } from '../../src/http/accounts/users.ts';

const run = promisify(execFile);

const wantedRequests = 2_000;
const maxResponseBytes = 5_000_000;
/** Random requests are sent for so long, also when more than those wanted have been sent. */
const sentSeconds = 420;
/** With the last responses. */
const maxMs = 480_000;

let stack: Stack;
let key: string;
/** Ids that exist, by the segment of a path that they follow. */
let ids: Readonly<Record<string, string>>;
/** A user other than that of the key, who may be disabled. */
let user: string;

beforeAll(async () => {
  stack = await startStack('schemathesis', { EXPORTD_QUERIES_PER_HOUR: '100000' });
  await insertEvents(stack.pool, stack.projectId, hourAgo(2), 100);
  key = await stack.newKey(scopes);
  const id = await stack.createExport();
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(2).toISOString(),
    end_at: hourAgo(0).toISOString(),
  });
  const create = async (path: string, body: object) =>
    String((await stack.call('POST', path, body, { authorization: `Bearer ${key}` })).body.id);
  const webhook = await create('/webhooks/', { url: `${stack.baseUrl}/hook` });
  await stack.call('POST', `/webhooks/${webhook}/test/`);
  const [run] = await stack.runs(id);
  const { rows: jobs } = await stack.pool.query<{ id: string }>('select id from exportd.jobs');
  user = String((await createUser(stack.pool, { email: 'other@example.com' })).id);
  ids = {
    batch_exports: id,
    runs: run?.id ?? '',
    backfills: run?.backfill_id ?? '',
    intervals: run?.data_interval_start ?? '',
    jobs: jobs[0]?.id ?? '',
    keys: await create('/keys/', { name: 'Other', preset: 'viewer' }),
    webhooks: webhook,
  };
});
afterAll(() => stack.stop());

/** Paths below a resource that are no ids. */
const actions = new Set(['test', 'check', 'retry_failed', '']);

/**
 * Names the project, and in four of five requests objects that exist, so that random ids do not end each request with 404.
 * Objects that all requests share are not deleted.
 */
function withKnownIds(method: string, url: string, count: number): string {
  const [path = '', query] = url.split('?', 2);
  const segments = path.split('/');
  if (segments[1] === 'api' && segments.length > 3)
    segments[3] = segments[2] === 'users' ? user : String(stack.projectId);
  if (count % 5 > 0 && method !== 'DELETE')
    for (let at = 4; at + 1 < segments.length; at += 1) {
      const known = ids[segments[at] ?? ''];
      if (known !== undefined && !actions.has(segments[at + 1] ?? '')) segments[at + 1] = known;
    }
  return segments.join('/') + (query === undefined ? '' : `?${query}`);
}

/** What was wrong with a response, how many there were, and the size of the largest. */
interface Responses {
  count: number;
  maxBytes: number;
  readonly byStatus: Map<number, number>;
  readonly problems: string[];
}

/** Starts a proxy in front of the server, which looks at every response. */
async function startProxy(responses: Responses) {
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = 'GET', url = '/', headers } = incoming;
    responses.count += 1;
    const path = withKnownIds(method, url, responses.count);
    const body: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => body.push(chunk));
    const forwarded = sendRequest(`${stack.baseUrl}${path}`, { method, headers }, (response) => {
      const status = response.statusCode ?? 0;
      let bytes = 0;
      const text: Buffer[] = [];
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (status >= 500) text.push(chunk);
      });
      response.on('end', () => {
        responses.maxBytes = Math.max(responses.maxBytes, bytes);
        responses.byStatus.set(status, (responses.byStatus.get(status) ?? 0) + 1);
        if (status >= 500 || bytes > maxResponseBytes)
          responses.problems.push(
            `${method} ${path}: ${status}, ${bytes} bytes. ${Buffer.concat(text).toString()} ${Buffer.concat(body).toString().slice(0, 2_000)}`,
          );
      });
      outgoing.writeHead(status, response.headers);
      response.pipe(outgoing);
    });
    forwarded.on('error', (error) => {
      responses.problems.push(`${method} ${path}: ${String(error)}`);
      outgoing.destroy();
    });
    incoming.pipe(forwarded);
  };
  const proxy = createServer(pass);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => proxy.close() };
}

it(
  'no random request to a documented operation breaks or silences the server',
  async () => {
    const schemathesis = await programPath('schemathesis');
    const responses: Responses = { count: 0, maxBytes: 0, byStatus: new Map(), problems: [] };
    const proxy = await startProxy(responses);
    // Passes over the document, each with other examples, until the time is spent. It ends with 1 when a check failed, which
    // is counted here too. Four wait at a time: most of the time passes in waiting for commands.
    const sendRandomRequests = () =>
      run(
        schemathesis,
        [
          'run',
          `${stack.baseUrl}/api/schema`,
          '--url',
          proxy.url,
          '--phases',
          'fuzzing',
          '--max-time',
          String(sentSeconds),
          '--max-examples',
          '25',
          '--no-shrink',
          '--seed',
          '1',
          '--checks',
          'not_a_server_error',
          '--continue-on-failure',
          '--workers',
          '4',
          '--generation-database',
          'none',
          '--suppress-health-check',
          'all',
          '--header',
          `Authorization: Bearer ${key}`,
        ],
        // It writes what it found into its folder.
        { maxBuffer: 64 * 1_024 * 1_024, cwd: fromSetUp('EXPORTD_TEST_FOLDER') },
      ).catch((error: unknown) => {
        if ((error as { code?: unknown }).code !== 1) throw error;
      });
    try {
      const server = serverAt(stack.baseUrl);
      const watched = await watchProcess(server, sendRandomRequests);
      const { count, maxBytes, byStatus, problems } = responses;
      const statuses = [...byStatus].map(([status, requests]) => `${requests} × ${status}`).join(', ');
      process.stdout.write(
        `${count} requests (${statuses}); largest response ${maxBytes} bytes; silent for ${watched.silentMs} ms; grown by ${watched.grownMiB} MiB\n`,
      );
      expect(problems).toEqual([]);
      expect(count).toBeGreaterThanOrEqual(wantedRequests);
      expect(byStatus.get(200)).toBeGreaterThan(100);
      expectWithinLimits(server, watched);
    } finally {
      proxy.close();
    }
  },
  maxMs,
);
