import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { examples } from '../../src/http/openapi/openapi.ts';
import { exportd } from './command_line.ts';

/** A request that a command sent. */
interface Sent {
  readonly operation: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const service = {
  EXPORTD_BASE_URL: 'http://exportd.test',
  EXPORTD_API_KEY: 'a-key',
  AWS_ACCESS_KEY_ID: 'AKIAEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'example-secret',
};
const project = '/api/projects/1';

/** Operations by the form of their path; those without parameters first, as the router prefers them. */
const operations = Object.keys(examples)
  .map((operation) => {
    const [method = '', path = ''] = operation.split(' ');
    const form = path.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, '[^/]+');
    return {
      operation,
      method,
      form: new RegExp(`^(?:${project})?${form}$`),
      parameters: form.split('[^/]+').length,
    };
  })
  .toSorted((one, other) => one.parameters - other.parameters);

let sent: Sent[];
let status: number | undefined;

/** Responds as the document of the API says: with the first example of an operation, or of `status` if it has one. */
const respond = (url: string, method: string, body: unknown): Response => {
  const { pathname, searchParams } = new URL(url);
  if (
    pathname === '/api/projects' &&
    method === 'GET' &&
    searchParams.get('limit') === '1000' &&
    sent.length === 0
  )
    return Response.json({ count: 1, next: null, previous: null, results: [{ id: 1, name: 'Shop' }] });
  const found = operations.find((one) => one.method === method && one.form.test(pathname));
  if (!found) throw new Error(`No operation of the document is ${method} ${pathname}.`);
  sent.push({ operation: found.operation, query: Object.fromEntries(searchParams), body });
  const responses = Object.entries(examples[found.operation]?.responses ?? {});
  const [code = '200', named = {}] =
    responses.find(([one]) => Number(one) === status) ?? responses.find(([one]) => one !== '202') ?? [];
  const [example] = Object.values(named);
  return new Response(example === undefined ? null : JSON.stringify(example), {
    status: example === undefined ? 204 : Number(code),
  });
};

beforeEach(() => {
  sent = [];
  status = undefined;
  jest
    .spyOn(globalThis, 'fetch')
    .mockImplementation((url, { method = 'GET', body } = {}) =>
      Promise.resolve(
        respond(url as string, method, typeof body === 'string' ? JSON.parse(body) : undefined),
      ),
    );
});
afterEach(() => {
  jest.restoreAllMocks();
});

const id = '0192f1c4-0000-7000-8000-000000000001';
const inner = '0192f1c4-0000-7000-8000-000000000002';
const start = '2026-11-01T10:00:00Z';
const end = '2026-11-01T11:00:00Z';
const flags = ['--bucket', 'my-bucket', '--region', 'eu-central-1', '--prefix', 'clicks'];

const titled = (commands: readonly (readonly string[])[]) =>
  commands.map((command) => ({ title: command.join(' '), command }));

/** What a command sent and printed, as a text that is easy to review. */
async function outcomeOf(command: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await exportd(service, ...command);
  const requests = sent.map(({ operation, query, body }) => {
    const search = new URLSearchParams(query).toString();
    return `${operation}${search === '' ? '' : ` ?${search}`}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`;
  });
  return ['', ...requests, `→ ${code}`, stdout + stderr].join('\n');
}

describe('a command calls its operation and prints the response', () => {
  it.each(
    titled([
      ['export', 'list'],
      ['export', 'show', id],
      ['export', 'get', id],
      ['export', 'create', '{"retention_days": 365}', ...flags, '--format', 'Parquet', '--paused'],
      ['export', 'create', ...flags, '--test'],
      ['export', 'update', id, '{"name": "Renamed"}'],
      ['export', 'delete', id],
      ['export', 'pause', id],
      ['export', 'unpause', id, '--backfill'],
      ['export', 'backfill', id, '--start-at', start, '--end-at', end, '--dry-run'],
      ['export', 'backfill', id, '--start-at', start, '--end-at', end, '--allow-shrink'],
      ['export', 'retry', id, inner, '--allow-shrink'],
      ['export', 'retry', id, '--failed', '--since', '-1h'],
      ['export', 'intervals', id, '--status', 'gap,held', '--after', start],
      ['export', 'manifests', id, '--since', '-1h', '--limit', '5'],
      ['export', 'reading', id],
      ['export', 'interval', id, start],
      ['export', 'find', id, start, inner],
      ['export', 'preview', '{"name": "New"}'],
      ['export', 'preview', '--id', id],
      ['export', 'estimate', '{"interval": "hour"}'],
      ['export', 'estimate', '--id', id],
      ['export', 'acknowledge', id, start, end, '--reason', 'Deleted by law'],
      ['export', 'logs', id, '--limit', '2'],
      ['why', id],
      ['run', 'list', id, '--status', 'Failed', '--created-by', 'backfill'],
      ['run', 'show', id, inner],
      ['run', 'cancel', id, inner],
      ['backfill', 'list', id],
      ['backfill', 'show', id, inner],
      ['backfill', 'cancel', id, inner],
      ['backfill', 'pause', id, inner],
      ['backfill', 'unpause', id, inner],
      ['table', 'describe', id],
      ['table', 'history', id, '--before', '7'],
      ['table', 'check', id],
      ['table', 'repair', id],
      ['destination', 'test', ...flags],
      ['destination', 'test', id, '--region', 'eu-west-1'],
      ['webhook', 'create', '--url', 'https://example.com/hook', '--events', 'run.failed'],
      ['webhook', 'list'],
      ['webhook', 'update', id, '--disable', '--batch-export', 'all'],
      ['webhook', 'delete', id],
      ['webhook', 'test', id],
      ['webhook', 'deliveries', id, '--status', 'failed'],
      ['webhook', 'resend', id, inner],
      ['audit', '--action', 'webhook.create', '--since', start],
      ['key', 'create', '--name', 'CI', '--scopes', 'query:read'],
      ['key', 'list'],
      ['key', 'rotate', id, '--overlap', '60'],
      ['key', 'revoke', id, '--descendants'],
      ['user', 'create', '--email', 'ada@example.com'],
      ['user', 'list'],
      ['user', 'list', '--all'],
      ['project', 'create', '--name', 'Films'],
      ['project', 'list'],
    ]),
  )('$title', async ({ command }) => {
    expect(await outcomeOf(command)).toMatchSnapshot();
    const { stdout } = await exportd(service, ...command, '--json');
    expect(() => JSON.parse(stdout || 'null') as unknown).not.toThrow();
  });
});

describe('a command that is not applied yet says so', () => {
  it.each(
    titled([
      ['export', 'create', ...flags],
      ['export', 'update', id, '{"name": "Renamed"}'],
      ['export', 'delete', id],
      ['export', 'backfill', id, '--start-at', start, '--end-at', end],
      ['run', 'cancel', id, inner],
      ['backfill', 'pause', id, inner],
    ]),
  )('$title', async ({ command }) => {
    status = 202;
    expect(await outcomeOf(command)).toMatchSnapshot();
  });
});
