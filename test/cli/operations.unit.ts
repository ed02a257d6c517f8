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
let exampleName: string | undefined;

/** Responds as the document of the API says: with `exampleName`, or the first example of an operation, or of `status` if it has one. */
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
  const example = exampleName === undefined ? Object.values(named)[0] : named[exampleName];
  return new Response(example === undefined ? null : JSON.stringify(example), {
    status: example === undefined ? 204 : Number(code),
  });
};

beforeEach(() => {
  sent = [];
  status = undefined;
  exampleName = undefined;
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
async function outcomeOf(command: readonly string[]): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await exportd(service, ...command);
  const requests = sent.map(({ operation, query, body }) => {
    const search = new URLSearchParams(query).toString();
    return `${operation}${search === '' ? '' : ` ?${search}`}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`;
  });
  return { code, text: ['', ...requests, `→ ${code}`, stdout + stderr].join('\n') };
}

/** Expects what a command sent and printed, and that with `--json` it ends alike and prints JSON alone. */
async function expectOutcome(command: readonly string[]): Promise<{ code: number }> {
  const { code, text } = await outcomeOf(command);
  expect(text).toMatchSnapshot();
  sent = [];
  const { stdout, ...printed } = await exportd(service, ...command, '--json');
  expect(printed).toEqual({ code, stderr: '' });
  expect(() => JSON.parse(stdout) as unknown).not.toThrow();
  return { code };
}

describe('a command calls its operation and prints the response', () => {
  it.each(
    titled([
      ['export', 'list'],
      ['export', 'show', id],
      ['export', 'get', id],
      ['export', 'create', '{"retention_days": 365}', ...flags, '--format', 'Parquet', '--paused'],
      ['export', 'create', ...flags, '--interval', 'day'],
      ['export', 'update', id, '{"name": "Renamed"}'],
      ['export', 'delete', id],
      ['export', 'pause', id],
      ['export', 'unpause', id, '--backfill'],
      ['export', 'backfill', id, '--start-at', start, '--end-at', end, '--dry-run'],
      ['export', 'backfill', id, '--start-at', start, '--end-at', end, '--allow-shrink'],
      ['export', 'backfill', id, '--start-at', 'first', '--end-at', end, '--only', 'missing', '--rewrite'],
      ['export', 'retry', id, inner],
      ['export', 'retry', '--failed', '--since', '-1h'],
      ['export', 'retry', id, '--failed', '--since', '-1h'],
      ['export', 'intervals', id, '--status', 'gap,held', '--after', start],
      ['export', 'intervals', id, '--before', end, '--limit', '1'],
      ['export', 'manifests', id, '--since', '-1h', '--limit', '5'],
      ['export', 'reading', id],
      ['export', 'reading', id, '--reader', 'duckdb'],
      ['export', 'interval', id, start],
      ['export', 'find', id, start, inner],
      ['export', 'preview', '{"name": "New"}'],
      ['export', 'preview', '--id', id],
      ['export', 'estimate', '{"interval": "hour"}'],
      ['export', 'estimate', '--id', id],
      ['export', 'estimate', '{"interval": "hour"}', '--id', id],
      ['export', 'difference', id, start],
      ['export', 'difference', id, start, '--keep', '--reason', 'Deleted by law'],
      ['export', 'difference', id, start, '--remove', '2', '--reason', 'Deleted by law'],
      ['export', 'logs', id, '--limit', '2'],
      ['why', id],
      ['run', 'list', id, '--status', 'Failed', '--created-by', 'backfill'],
      ['run', 'list', id, '--limit', '1'],
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
      ['action', 'create', '--name', 'Bought', '--event', 'purchase', '--steps', '[{"url": "/thank-you"}]'],
      ['action', 'list'],
      ['action', 'get', '5'],
      ['action', 'update', '5', '--name', 'Paid'],
      ['action', 'delete', '5'],
      ['query', 'run', 'Events by name'],
      ['query', 'save', 'Events by name', 'select count() from events'],
      ['query', 'save', 'Events by name', '{"kind": "TrendsQuery", "series": []}', '--overwrite'],
      ['query', 'list'],
      ['query', 'rename', 'Events by name', 'Purchases'],
      ['query', 'delete', 'Events by name', '--yes'],
      ['audit', '--action', 'webhook.create', '--since', start],
      ['audit', '--object', `batch_exports/${id}`, '--limit', '1'],
      ['audit', '--exclude-action', 'session.sign_in', '--until', end],
      ['key', 'create', '--name', 'CI', '--scopes', 'query:read'],
      ['key', 'create', '--name', 'CI', '--scopes', 'query:read', '--expires-at', '2040-01-01T00:00:00Z'],
      ['key', 'create', '--name', 'CI', '--preset', 'editor'],
      ['key', 'list'],
      ['key', 'rotate', id, '--overlap', '60'],
      ['key', 'revoke', id, '--descendants'],
      ['user', 'create', '--email', 'ada@example.com'],
      ['user', 'list'],
      ['user', 'list', '--all'],
      ['project', 'create', '--name', 'Films'],
      ['project', 'list'],
      ['project', 'rename', '2', 'Webshop'],
      ['user', 'disable', '2'],
      ['user', 'enable', '2'],
    ]),
  )('$title', async ({ command }) => {
    await expectOutcome(command);
  });

  it('webhook test, which exits with 1 if the message is not delivered', async () => {
    exampleName = 'not_delivered';
    expect(await expectOutcome(['webhook', 'test', id])).toEqual({ code: 1 });
  });
});

describe('a command that is refused says why, and exits with 1', () => {
  it.each(
    titled([
      ['export', 'create', ...flags, '--test'],
      ['action', 'create', '--name', 'Bought'],
      ['action', 'update', '5'],
      ['export', 'retry', id],
      ['export', 'retry', id, inner, '--since', '-1h'],
      ['export', 'reading', id, '--reader', 'excel'],
      ['query', 'save', 'Purchases'],
      ['query', 'save', 'Purchases', '{"kind":'],
    ]),
  )('$title', async ({ command }) => {
    const { code, text } = await outcomeOf(command);
    expect(code).toBe(1);
    expect(text).toMatchSnapshot();
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
    await expectOutcome(command);
  });
});
