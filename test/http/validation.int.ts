import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { minutesAgo } from '../decisions/commander.ts';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
let id: string;
beforeAll(async () => {
  api = await openApiHarness();
  id = await api.createExport();
});
afterAll(() => api.close());

const s3 = (config: object) => ({ destination: { type: 'S3', config } });
const complete = exportBody().destination.config;
const later = minutesAgo(-5);
const pattern = (operator: string, value: unknown) => ({
  filters: [{ type: 'event', key: 'plan', operator, value }],
});

type Method = 'POST' | 'PATCH';
/** Method, path, body, the invalid field, and a pattern of the detail. */
const invalidRequests: readonly [Method, string, unknown, string | null, RegExp][] = [
  ['POST', 'batch_exports', {}, 'name', /required/],
  ['POST', 'batch_exports', exportBody({ name: '  ' }), 'name', /blank/],
  ['POST', 'batch_exports', exportBody({ name: 'x'.repeat(256) }), 'name', /255/],
  ['POST', 'batch_exports', exportBody({ name: null }), 'name', /may not be null/],
  ['POST', 'batch_exports', exportBody({ destination: undefined }), 'destination', /required/],
  [
    'POST',
    'batch_exports',
    exportBody({ destination: { type: 'FTP', config: {} } }),
    'destination__type',
    /S3/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody({ destination: { type: 'S3' } }),
    'destination__config__bucket_name',
    /missing/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody({ destination: { ...s3(complete).destination, kind: 1 } }),
    'destination__kind',
    /Unknown.*'kind'/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody(s3({ ...complete, hello: 1 })),
    'destination__config__hello',
    /unknown field.*hello/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody(s3({ ...complete, region: 5 })),
    'destination__config__region',
    /invalid type/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody(s3({ ...complete, filters: [{ type: 'hogql', key: '1 +' }] })),
    'destination__config__filters__0__key',
    /line 1, column 4/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody(s3({ ...complete, ...pattern('regex', '(') })),
    'destination__config__filters__0__value',
    /Invalid regular expression/,
  ],
  // JavaScript would accept it, and the pattern before it matches everything.
  [
    'POST',
    'batch_exports',
    exportBody(s3({ ...complete, ...pattern('not_regex', ['', 'a{3000}']) })),
    'destination__config__filters__0__value__1',
    /regular expression.*repe/,
  ],
  [
    'POST',
    'batch_exports',
    exportBody({ model: 'persons', ...s3({ ...complete, exclude_events: ['a'] }) }),
    'destination__config__exclude_events',
    /exports of events/,
  ],
  ['POST', 'batch_exports', exportBody({ interval: 'every 7 minutes' }), 'interval', /every N minutes/],
  ['POST', 'batch_exports', exportBody({ model: 'sessions' }), 'model', /'events', 'persons'/],
  ['POST', 'batch_exports', exportBody({ timezone: 'Mars/Base' }), 'timezone', /time zone/],
  [
    'POST',
    'batch_exports',
    exportBody({ interval: 'hour', offset_hour: 2 }),
    'offset_hour',
    /not applicable/,
  ],
  ['POST', 'batch_exports', exportBody({ interval: 'day', offset_hour: 24 }), 'offset_hour', /23/],
  ['POST', 'batch_exports', exportBody({ interval: 'week', offset_day: 7 }), 'offset_day', /6/],
  ['POST', 'batch_exports', exportBody({ dialect_query: 'select 1' }), 'dialect_query', /FROM is missing/],
  ['POST', 'batch_exports', exportBody({ retention_days: 0 }), 'retention_days', /at least 1/],
  [
    'POST',
    'batch_exports',
    exportBody({ start_at: '2026-01-02T00:00:00Z', end_at: '2026-01-01T00:00:00Z' }),
    'end_at',
    /after/,
  ],
  ['POST', 'batch_exports', exportBody({ start_at: '0000-01-01T00:00:00Z' }), 'start_at', /1970/],
  ['PATCH', 'batch_exports/:id', { interval: null }, 'interval', /may not be null/],
  ['PATCH', 'batch_exports/:id', { name: null }, 'name', /may not be null/],
  ['PATCH', 'batch_exports/:id', { paused: 'yes' }, 'paused', /boolean/],
  ['PATCH', 'batch_exports/:id', { colour: 1, age: 2 }, 'age', /'age', 'colour'/],
  [
    'PATCH',
    'batch_exports/:id',
    { destination: { type: 'BigQuery' } },
    'destination__type',
    /from 'S3' to 'BigQuery'/,
  ],
  [
    'PATCH',
    'batch_exports/:id',
    { destination: { config: pattern('regex', ['a', '[']) } },
    'destination__config__filters__0__value__1',
    /Invalid regular expression/,
  ],
  ['PATCH', 'batch_exports/:id', { name: 'a\u0000b' }, 'name', /Null characters/],
  [
    'PATCH',
    'batch_exports/:id',
    { destination: { config: { prefix: '\ud800' } } },
    'destination__config__prefix',
    /surrogates/,
  ],
  ['PATCH', 'batch_exports/:id', [1], null, /object/],
  ['PATCH', 'batch_exports/:id', 'null', null, /object/],
  ['PATCH', 'batch_exports/:id', '{"name": ', null, /JSON parse error/],
  ['PATCH', 'batch_exports/:id', '{"__proto__": {"name": "x"}}', null, /JSON parse error/],
  ['POST', 'batch_exports/:id/pause', { last_paused_at: 'yesterday' }, 'last_paused_at', /ISO 8601/],
  ['POST', 'batch_exports/:id/pause', { model: 5 }, 'model', /one of/],
  ['POST', 'batch_exports/:id/unpause', { backfill: 'yes' }, 'backfill', /boolean/],
  ['POST', 'batch_exports/:id/backfill', { end_at: minutesAgo(1) }, 'start_at', /required/],
  ['POST', 'batch_exports/:id/backfill', { start_at: minutesAgo(1) }, 'end_at', /required/],
  [
    'POST',
    'batch_exports/:id/backfill',
    { start_at: '2026-01-01T00:00:00', end_at: minutesAgo(1) },
    'start_at',
    /offset/,
  ],
  [
    'POST',
    'batch_exports/:id/backfill',
    { start_at: minutesAgo(1), end_at: minutesAgo(1).replace('Z', '+00:00') },
    'start_at',
    /before/,
  ],
  ['POST', 'batch_exports/:id/backfill', { start_at: minutesAgo(9), end_at: later }, 'end_at', /future/],
  [
    'POST',
    'batch_exports/:id/backfills',
    { start_at: minutesAgo(9), end_at: minutesAgo(1), dry_run: 'yes' },
    'dry_run',
    /boolean/,
  ],
  [
    'POST',
    'batch_exports/:id/backfills',
    { start_at: null, end_at: minutesAgo(1), only: 'everything' },
    'only',
    /missing/,
  ],
  [
    'POST',
    'batch_exports/:id/backfill',
    { start_at: minutesAgo(9), end_at: minutesAgo(1), rewrite: 'yes' },
    'rewrite',
    /boolean/,
  ],
  ['POST', `batch_exports/:id/runs/${randomUUID()}/retry`, { status: 'Done' }, 'status', /one of/],
];

describe('a request that is not valid', () => {
  it.each(invalidRequests)('%s %s of %j is 400 for %s', async (method, path, body, attr, words) => {
    const url = path.replace(':id', id);
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    const response = await api.call(method, url, body, headers);
    expect([response.status, response.body.type, response.body.attr]).toEqual([
      400,
      'validation_error',
      attr,
    ]);
    expect(response.body.detail).toMatch(words);
    expect(response.body.code).toMatch(/^(required|invalid_input|parse_error|dialect_error)$/);
  });

  it.each([
    ['runs/?limit=0', 'limit'],
    ['runs/?limit=1001', 'limit'],
    ['runs/?limit=many', 'limit'],
    ['runs/?status=Done', 'status'],
    ['runs/?ordering=status', 'ordering'],
    ['runs/?after=2026-01-01', 'after'],
    ['runs/?cursor=nonsense', 'cursor'],
    ['runs/?cursor=WzFd', 'cursor'],
    ['logs?level=LOUD', 'level'],
    ['logs?offset=-1', 'offset'],
    ['logs?run_id=1', 'run_id'],
    ['logs?search=%00', 'search'],
    ['backfills/?limit=1.5', 'limit'],
  ])('GET %s is 400 for %s', async (path, attr) => {
    const { status, body } = await api.call('GET', `batch_exports/${id}/${path}`);
    expect([status, body.type, body.attr]).toEqual([400, 'validation_error', attr]);
  });

  it('is 413 when it is too large and 415 when it is not JSON', async () => {
    const large = await api.call('PATCH', `batch_exports/${id}`, { name: 'x'.repeat(2 ** 20) });
    expect([large.status, large.body.type]).toEqual([413, 'payload_too_large']);
    const headers = { 'content-type': 'text/plain' };
    const plain = await api.call('PATCH', `batch_exports/${id}`, 'name=x', headers);
    expect([plain.status, plain.body.type]).toEqual([415, 'unsupported_media_type']);
  });

  it('is 400 when its body is nested too deeply', async () => {
    const body = `{"name":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const headers = { 'content-type': 'application/json' };
    const response = await api.call('PATCH', `batch_exports/${id}`, body, headers);
    expect([response.status, response.body.type]).toEqual([400, 'validation_error']);
  });

  it('is 400 when its body is not UTF-8, which decoding would change', async () => {
    const body = Buffer.from('{"name":"Caf\xe9"}', 'latin1');
    const headers = { 'content-type': 'application/json' };
    const response = await api.call('PATCH', `batch_exports/${id}`, body, headers);
    expect([response.status, response.body.code]).toEqual([400, 'parse_error']);
    expect(response.body.detail).toMatch(/UTF-8/);
  });

  it('is 400 when it has an integer that would be rounded, which a string is not', async () => {
    const headers = { 'content-type': 'application/json' };
    const named = (name: string) =>
      api.call('PATCH', `batch_exports/${id}`, Buffer.from(`{"name":${name}}`), headers);
    const rounded = await named('9007199254740993');
    expect([rounded.status, rounded.body.code]).toEqual([400, 'invalid_input']);
    expect(rounded.body.detail).toMatch(/^The integer 9007199254740993 .* as a string/);
    expect((await named('"9007199254740993"')).status).toBe(200);
  });

  it('is 404 when its URL cannot be decoded', async () => {
    const { status, body } = await api.call('GET', 'batch_exports/%E0%A4');
    expect([status, body.type]).toEqual([404, 'not_found']);
  });

  it.each(['application/json', 'application/x-www-form-urlencoded'])(
    'is valid with an empty body of type %s',
    async (type) => {
      const { status } = await api.call('POST', `batch_exports/${id}/pause`, '', { 'content-type': type });
      expect(status).toBe(200);
    },
  );
});
