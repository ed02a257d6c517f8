import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writeLogLine } from '../../src/journal/journal.ts';
import { recorded } from '../cli/import/recordings.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { exportBody, openApiHarness, plantedSecrets, type ApiHarness } from './api_harness.ts';

// The fields and routes that PostHog's reference of batch exports has, and what exportd does with each.

const bucket = useTestBucket();
let api: ApiHarness;
let root: string;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: 'true',
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_DESTINATION_TEST_TIMEOUT: '60s',
  });
  root = await api.listen();
});
afterAll(() => api.close());

type Fields = Readonly<Record<string, unknown>>;
interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: Record<string, unknown>;
  readonly location: string | null;
}

/** Sends a request below the project over a connection. */
async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const url = path.startsWith('/') ? path : `/api/projects/${api.projectId}/batch_exports/${path}`;
  const response = await fetch(root + url, {
    method,
    headers: { authorization: `Bearer ${api.key}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    text,
    body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : {},
    location: response.headers.get('location'),
  };
}

const filters = [{ key: '$browser', type: 'event', operator: 'exact', value: ['Safari'] }];
const query = 'select uuid, event from events';

/** A run as PostHog's GET returns it. */
const posthogRun = {
  id: randomUUID(),
  batch_export: randomUUID(),
  batch_export_on_demand: null,
  backfill: null,
  status: 'Completed',
  records_completed: 10,
  records_failed: 0,
  records_total_count: null,
  bytes_exported: 2_048,
  latest_error: null,
  data_interval_start: '2026-01-01T02:00:00Z',
  data_interval_end: '2026-01-02T02:00:00Z',
  cursor: null,
  created_at: '2026-01-02T02:01:00.123456Z',
  finished_at: '2026-01-02T02:02:00.123456Z',
  last_updated_at: '2026-01-02T02:02:00.123456Z',
};

/** An export as PostHog's GET returns it: its secrets are left out there. */
const posthogExport = (fields: Fields = {}, config: Fields = {}, destination: Fields = {}) => ({
  ...recorded(),
  id: randomUUID(),
  name: 'Clicks to S3',
  destination: {
    type: 'S3',
    integration: null,
    config: {
      bucket_name: 'bucket',
      region: 'us-east-1',
      prefix: `posthog/${randomUUID()}/{table}/{year}`,
      file_format: 'Parquet',
      compression: 'zstd',
      encryption: null,
      kms_key_id: null,
      endpoint_url: null,
      max_file_size_mb: 50,
      use_virtual_style_addressing: false,
      include_events: ['purchase'],
      exclude_events: null,
      legacy_parquet_extension: false,
      ...config,
    },
    ...destination,
  },
  interval: 'day',
  timezone: 'Europe/Berlin',
  offset_hour: 3,
  paused: true,
  last_paused_at: '2025-06-02T08:00:00.123456Z',
  start_at: '2026-01-01T00:00:00Z',
  latest_runs: [posthogRun],
  ...fields,
});
const withDestination = (destination: Fields, config: Fields = {}) => posthogExport({}, config, destination);
const withConfig = (config: Fields) => posthogExport({}, config);

const errorOf = ({ status, body }: Answer) => [status, body.attr, body.detail];

describe('an export of PostHog', () => {
  it('gives an equal one, when it is posted as GET returns it, and when that is put back', async () => {
    const given = posthogExport({ filters, hogql_query: query });
    const { legacy_parquet_extension: _, ...config } = given.destination.config;
    const created = await send('POST', '', given);
    expect([created.status, created.body]).toMatchObject([
      201,
      {
        id: expect.not.stringMatching(given.id),
        team_id: api.projectId,
        name: given.name,
        model: 'events',
        destination: { type: 'S3', config: { ...config, exclude_events: [], filters } },
        interval: 'day',
        timezone: 'Europe/Berlin',
        offset_hour: 3,
        offset_day: null,
        paused: true,
        start_at: '2026-01-01T00:00:00.000Z',
        end_at: null,
        dialect_query: query,
        latest_runs: [],
      },
    ]);
    const id = String(created.body.id);
    const withoutTime = ({ last_updated_at: _time, ...body }: Answer['body']) => body;
    for (const method of ['PUT', 'PATCH'])
      for (const body of [given, created.body]) {
        const sent = await send(method, `${id}/`, body);
        expect([sent.status, withoutTime(sent.body)]).toEqual([
          200,
          withoutTime({ ...created.body, last_paused_at: sent.body.last_paused_at }),
        ]);
      }
    expect((await send('POST', 'check/', withConfig({}))).body).toMatchObject({ secrets: [] });
  });

  it('needs the keys of its server again, which stay when it is put back without them', async () => {
    const type = 'S3Compatible';
    const endpoint_url = bucket.endpoint;
    expect(errorOf(await send('POST', '', withDestination({ type }, { endpoint_url })))).toEqual([
      400,
      'destination__config__aws_access_key_id',
      expect.stringContaining('aws_secret_access_key'),
    ]);
    const given = withDestination({ type }, { endpoint_url, ...plantedSecrets });
    const { status, body, text } = await send('POST', '', given);
    expect([status, body]).toMatchObject([201, { destination: { type: 'S3', config: { endpoint_url } } }]);
    for (const secret of Object.values(plantedSecrets)) expect(text).not.toContain(secret);
    const {
      aws_access_key_id: _id,
      aws_secret_access_key: _key,
      ...masked
    } = given.destination.config as Fields;
    const put = await send('PUT', `${String(body.id)}/`, { ...given, destination: { type, config: masked } });
    expect([put.status, put.body.destination]).toEqual([200, body.destination]);
  });
});

/** What a request has, and the fields of the response that follow from it. */
const accepted: readonly (readonly [string, () => Fields, Fields])[] = [
  [
    'id, team_id, created_at, last_updated_at, latest_runs, schema are ignored',
    () => posthogExport(),
    { team_id: 1 },
  ],
  ['name', () => posthogExport({ name: 'Ours' }), { name: 'Ours' }],
  ['model events', () => posthogExport({ model: 'events' }), { model: 'events' }],
  [
    'model persons',
    () => posthogExport({ model: 'persons' }, { include_events: null }),
    { model: 'persons' },
  ],
  ['model null', () => posthogExport({ model: null }), { model: 'events' }],
  ['interval hour', () => posthogExport({ interval: 'hour', offset_hour: null }), { interval: 'hour' }],
  [
    'interval week',
    () => posthogExport({ interval: 'week', offset_day: 1 }),
    { interval: 'week', offset_day: 1 },
  ],
  [
    'interval every 5 minutes',
    () => posthogExport({ interval: 'every 5 minutes', offset_hour: null }),
    { interval: 'every 5 minutes' },
  ],
  [
    'interval every 15 minutes',
    () => posthogExport({ interval: 'every 15 minutes', offset_hour: null }),
    { interval: 'every 15 minutes' },
  ],
  ['timezone null', () => posthogExport({ timezone: null }), { timezone: 'UTC' }],
  ['paused', () => posthogExport({ paused: false }), { paused: false, last_paused_at: null }],
  [
    'last_paused_at of a new export is ignored',
    () => posthogExport({ paused: false }),
    { last_paused_at: null },
  ],
  [
    'start_at and end_at',
    () => posthogExport({ end_at: '2027-01-01T00:00:00+01:00' }),
    { end_at: '2026-12-31T23:00:00.000Z' },
  ],
  ['filters null', () => posthogExport({ filters: null }), { destination: { config: { filters: [] } } }],
  ['filters', () => posthogExport({ filters }), { destination: { config: { filters } } }],
  [
    'filters in both places, equal',
    () => posthogExport({ filters }, { filters }),
    { destination: { config: { filters } } },
  ],
  [
    'filters null beside those of the config',
    () => posthogExport({ filters: null }, { filters }),
    { destination: { config: { filters } } },
  ],
  [
    'filters beside null in the config',
    () => posthogExport({ filters }, { filters: null }),
    { destination: { config: { filters } } },
  ],
  ['hogql_query null', () => posthogExport({ hogql_query: null }), { dialect_query: null, schema: null }],
  ['hogql_query', () => posthogExport({ hogql_query: query }), { dialect_query: query }],
  [
    'hogql_query null beside dialect_query',
    () => posthogExport({ dialect_query: query }),
    { dialect_query: query },
  ],
  [
    'hogql_query equal to dialect_query',
    () => posthogExport({ hogql_query: query, dialect_query: query }),
    { dialect_query: query },
  ],
  [
    'schema of a query',
    () => posthogExport({ hogql_query: query }),
    {
      schema: {
        fields: [
          { alias: 'uuid', expression: 'uuid', type: 'uuid' },
          { alias: 'event', expression: 'event', type: 'text' },
        ],
        values: {},
        hogql_query: 'SELECT uuid, event FROM events',
        dialect_query: 'SELECT uuid, event FROM events',
      },
    },
  ],
  ['incremental_mode APPEND', () => posthogExport({ incremental_mode: 'APPEND' }), {}],
  ['destination.type AwsS3', () => withDestination({ type: 'AwsS3' }), { destination: { type: 'S3' } }],
  [
    'destination.type S3Compatible',
    () =>
      withDestination(
        { type: 'S3Compatible' },
        { endpoint_url: 'https://s3.example.com', ...plantedSecrets },
      ),
    { destination: { type: 'S3' } },
  ],
  ['destination.integration_id null', () => withDestination({ integration_id: null }), {}],
  [
    'config.file_format JSONLines, compression gzip',
    () => withConfig({ file_format: 'JSONLines', compression: 'gzip' }),
    { destination: { config: { file_format: 'JSONLines', compression: 'gzip' } } },
  ],
  [
    'config.compression null',
    () => withConfig({ compression: null }),
    { destination: { config: { compression: null } } },
  ],
  [
    'config.max_file_size_mb 0',
    () => withConfig({ max_file_size_mb: 0 }),
    { destination: { config: { max_file_size_mb: null } } },
  ],
  [
    'config.endpoint_url empty',
    () => withConfig({ endpoint_url: '' }),
    { destination: { config: { endpoint_url: null } } },
  ],
  [
    'config.encryption aws:kms, kms_key_id',
    () => withConfig({ encryption: 'aws:kms', kms_key_id: 'key' }),
    { destination: { config: { kms_key_id: 'key' } } },
  ],
  [
    'config.exclude_events',
    () => withConfig({ include_events: null, exclude_events: ['a'] }),
    { destination: { config: { exclude_events: ['a'] } } },
  ],
  ['config.legacy_parquet_extension null', () => withConfig({ legacy_parquet_extension: null }), {}],
];

/** What a request has, the field that the 400 names, and its words. */
const rejected: readonly (readonly [string, () => unknown, string | null, RegExp])[] = [
  ['name missing', () => posthogExport({ name: undefined }), 'name', /required/],
  ['name null', () => posthogExport({ name: null }), 'name', /null/],
  ['model sessions', () => posthogExport({ model: 'sessions' }), 'model', /'events', 'persons'/],
  ['model hogql', () => posthogExport({ model: 'hogql' }), 'model', /'events', 'persons'/],
  ['interval null', () => posthogExport({ interval: null }), 'interval', /null/],
  ['interval fortnight', () => posthogExport({ interval: 'fortnight' }), 'interval', /one of/],
  ['offset_hour of an hour', () => posthogExport({ interval: 'hour' }), 'offset_hour', /not applicable/],
  ['offset_hour 24', () => posthogExport({ offset_hour: 24 }), 'offset_hour', /23/],
  ['offset_day of a day', () => posthogExport({ offset_day: 1 }), 'offset_day', /not applicable/],
  ['timezone unknown', () => posthogExport({ timezone: 'Mars/Base' }), 'timezone', /time zone/],
  ['paused text', () => posthogExport({ paused: 'True' }), 'paused', /boolean/],
  ['start_at date', () => posthogExport({ start_at: '2026-01-01' }), 'start_at', /ISO 8601/],
  ['last_paused_at number', () => posthogExport({ last_paused_at: 5 }), 'last_paused_at', /ISO 8601/],
  ['filters object', () => posthogExport({ filters: { type: 'AND' } }), 'filters', /array of filters/],
  ['filters text', () => posthogExport({ filters: 'all' }), 'filters', /array of filters/],
  ['filters of numbers', () => posthogExport({ filters: [5] }), 'filters', /must be an object/],
  [
    'filters of cohorts',
    () => posthogExport({ filters: [{ type: 'cohort', key: 'id', value: 2 }] }),
    'filters__0__type',
    /one of: event/,
  ],
  [
    'filters with a bad pattern',
    () => posthogExport({ filters: [{ ...filters[0], operator: 'regex', value: '(' }] }),
    'filters__0__value',
    /regular expression/,
  ],
  [
    'filters that differ',
    () => posthogExport({ filters }, { filters: [] }),
    'filters',
    /destination\.config\.filters.*differ/,
  ],
  [
    'filters of the config that are bad',
    () => withConfig({ filters: [5] }),
    'destination__config__filters',
    /must be an object/,
  ],
  ['hogql_query number', () => posthogExport({ hogql_query: 5 }), 'hogql_query', /string/],
  [
    'hogql_query of another table',
    () => posthogExport({ hogql_query: 'select 1 from persons' }),
    'hogql_query',
    /./,
  ],
  [
    'hogql_query that differs',
    () => posthogExport({ hogql_query: query, dialect_query: 'select event from events' }),
    'hogql_query',
    /dialect_query.*differ/,
  ],
  [
    'dialect_query of another table',
    () => posthogExport({ dialect_query: 'select 1 from persons' }),
    'dialect_query',
    /./,
  ],
  [
    'hogql_modifiers',
    () => posthogExport({ hogql_modifiers: { debug: true } }),
    'hogql_modifiers',
    /modifiers/,
  ],
  ['primary_key', () => posthogExport({ primary_key: ['uuid'] }), 'primary_key', /primary key/],
  ['version_key', () => posthogExport({ version_key: 'version' }), 'version_key', /version key/],
  [
    'incremental_mode MERGE',
    () => posthogExport({ incremental_mode: 'MERGE' }),
    'incremental_mode',
    /APPEND/,
  ],
  ['a field that is unknown there too', () => posthogExport({ colour: 1 }), 'colour', /Unknown field/],
  [
    'destination.type Snowflake',
    () => withDestination({ type: 'Snowflake' }),
    'destination__type',
    /not a destination type/,
  ],
  ['destination.type null', () => withDestination({ type: null }), 'destination__type', /null/],
  [
    'destination.integration',
    () => withDestination({ integration: 12 }),
    'destination__integration',
    /aws_access_key_id.*role_arn/,
  ],
  [
    'destination.integration_id',
    () => withDestination({ integration_id: 12 }),
    'destination__integration_id',
    /aws_access_key_id/,
  ],
  ['destination.config text', () => withDestination({ config: 'bucket' }), 'destination__config', /object/],
  [
    'AwsS3 with a server',
    () => withDestination({ type: 'AwsS3' }, { endpoint_url: 'https://s3.example.com' }),
    'destination__config__endpoint_url',
    /S3Compatible/,
  ],
  [
    'S3Compatible without one',
    () => withDestination({ type: 'S3Compatible' }),
    'destination__config__endpoint_url',
    /needs/,
  ],
  [
    'config without bucket_name',
    () => withConfig({ bucket_name: undefined }),
    'destination__config__bucket_name',
    /missing required field/,
  ],
  ['config of unknown fields', () => withConfig({ hello: 1 }), 'destination__config__hello', /unknown field/],
  [
    'config.compression of no format',
    () => withConfig({ compression: 'lz5' }),
    'destination__config__compression',
    /not supported/,
  ],
  [
    'config.file_format',
    () => withConfig({ file_format: 'Avro' }),
    'destination__config__file_format',
    /not supported/,
  ],
  [
    'config.max_file_size_mb text',
    () => withConfig({ max_file_size_mb: '50' }),
    'destination__config__max_file_size_mb',
    /type/,
  ],
  [
    'config.use_virtual_style_addressing text',
    () => withConfig({ use_virtual_style_addressing: 'True' }),
    'destination__config__use_virtual_style_addressing',
    /type/,
  ],
  [
    'config.legacy_parquet_extension',
    () => withConfig({ legacy_parquet_extension: true }),
    'destination__config__legacy_parquet_extension',
    /never/,
  ],
  ['a list', () => [posthogExport()], null, /must be an object/],
];

describe('a field of the reference', () => {
  it.each(accepted)('is accepted: %s', async (_, body, expected) => {
    const created = await send('POST', '', body());
    expect([created.status, created.body]).toMatchObject([201, expected]);
  });

  it.each(rejected)('is a 400 that names it, and changes nothing: %s', async (_, body, attr, words) => {
    expect(errorOf(await send('POST', '', body()))).toEqual([400, attr, expect.stringMatching(words)]);
  });

  it('resets on an update what is null, and keeps what is omitted', async () => {
    const { body } = await send('POST', '', posthogExport({ filters, hogql_query: query }));
    const id = String(body.id);
    const configured = (changes: Fields) => ({ destination: { config: changes } });
    for (const [changes, expected] of [
      [{ name: 'Renamed' }, { name: 'Renamed', dialect_query: query, ...configured({ filters }) }],
      [{ filters: null }, { dialect_query: query, ...configured({ filters: [] }) }],
      [
        { filters, destination: { type: 'AwsS3', config: null } },
        configured({ filters, region: 'us-east-1' }),
      ],
      [{ hogql_query: null }, { dialect_query: null, ...configured({ filters }) }],
    ] as const) {
      const patched = await send('PATCH', `${id}/`, changes);
      expect([patched.status, patched.body]).toMatchObject([200, expected]);
    }
    for (const missing of ['name', 'interval', 'destination'])
      expect(errorOf(await send('PUT', `${id}/`, { ...posthogExport(), [missing]: undefined }))).toEqual([
        400,
        missing,
        expect.stringContaining('required'),
      ]);
    expect(errorOf(await send('PUT', `${id}/`, withDestination({ type: 'BigQuery' })))).toEqual([
      400,
      'destination__type',
      expect.stringContaining('Cannot change'),
    ]);
  });
});

describe('a range of a backfill', () => {
  const idsOf: Record<string, string> = {};
  beforeAll(async () => {
    for (const [interval, fields] of Object.entries({
      day: {},
      week: { offset_day: 1 },
      month: { offset_hour: 0 },
      hour: { offset_hour: null },
    })) {
      const { body } = await send('POST', '', posthogExport({ interval, ...fields }));
      idsOf[interval] = String(body.id);
    }
  });

  it.each([
    // In Berlin, where summer time began on 2026-03-29.
    ['day', '2026-03-29', '2026-03-31', '2026-03-29T01:00:00.000Z', '2026-03-31T01:00:00.000Z', 2],
    ['day', '2026-01-01', '2026-01-02', '2026-01-01T02:00:00.000Z', '2026-01-02T02:00:00.000Z', 1],
    ['day', '2026-01-01T02:00:00Z', '2026-01-03', '2026-01-01T02:00:00.000Z', '2026-01-03T02:00:00.000Z', 2],
    ['week', '2026-01-05', '2026-01-19', '2026-01-05T02:00:00.000Z', '2026-01-19T02:00:00.000Z', 2],
    // The week that has the date.
    ['week', '2026-01-07', '2026-01-08', '2026-01-05T02:00:00.000Z', '2026-01-12T02:00:00.000Z', 1],
    ['month', '2026-01-01', '2026-02-01', '2025-12-31T23:00:00.000Z', '2026-01-31T23:00:00.000Z', 1],
  ])('of a %s may have dates: %s to %s', async (interval, start_at, end_at, start, end, intervals) => {
    for (const path of ['backfill', 'backfills']) {
      const preview = await send('POST', `${idsOf[interval] ?? ''}/${path}/`, {
        start_at,
        end_at,
        dry_run: true,
      });
      expect([preview.status, preview.body]).toMatchObject([
        200,
        { start_at: start, end_at: end, intervals },
      ]);
    }
  });

  it('is open at its end, and begins with the first row of the source', async () => {
    const path = `${idsOf.day ?? ''}/backfills/`;
    const until = await send('POST', path, { start_at: '2026-01-01', end_at: null, dry_run: true });
    const now = Date.now();
    expect(until.status).toBe(200);
    expect(Date.parse(String(until.body.end_at))).toBeGreaterThan(now - 25 * 3_600_000);
    expect(Date.parse(String(until.body.end_at))).toBeLessThanOrEqual(now);
    expect(errorOf(await send('POST', path, { start_at: null, end_at: null }))).toEqual([
      400,
      'start_at',
      expect.stringContaining('no row'),
    ]);
  });

  it.each([
    ['hour', { start_at: '2026-01-01', end_at: '2026-01-02T00:00:00Z' }, 'start_at', /2026-01-01T00:00:00Z/],
    ['hour', { start_at: '2026-01-01T00:00:00Z', end_at: '2026-01-02' }, 'end_at', /shorter than a day/],
    ['day', { start_at: '2026-02-30', end_at: null }, 'start_at', /ISO 8601/],
    ['day', { start_at: '2026-01-01T00:00:00', end_at: null }, 'start_at', /offset/],
    ['day', { start_at: '1960-01-01', end_at: null }, 'start_at', /1970/],
    ['day', { start_at: 'yesterday', end_at: null }, 'start_at', /ISO 8601/],
    ['day', { start_at: 20_260_101, end_at: null }, 'start_at', /ISO 8601/],
    ['day', { start_at: '2026-01-02', end_at: '2026-01-02' }, 'start_at', /before/],
    ['day', { start_at: '2026-01-02', end_at: '2999-01-01' }, 'end_at', /future/],
    ['day', { start_at: '2026-01-02' }, 'end_at', /required/],
  ])('of a %s is rejected: %j', async (interval, range, attr, words) => {
    for (const path of ['backfill', 'backfills'])
      expect(errorOf(await send('POST', `${idsOf[interval] ?? ''}/${path}/`, range))).toEqual([
        400,
        attr,
        expect.stringMatching(words),
      ]);
  });
});

describe('a route of the reference', () => {
  let ids: Readonly<Record<'id' | 'run' | 'cancelled' | 'backfill' | 'deleted', string>>;
  const destination = () => ({ type: 'S3', config: configOf(bucket, { prefix: randomUUID() }) });
  const range = { start_at: minuteAgo(3), end_at: minuteAgo(1) };
  beforeAll(async () => {
    const create = async () =>
      String(
        (await send('POST', '', exportBody({ end_at: minuteAgo(0), destination: destination() }))).body.id,
      );
    const [id, deleted] = [await create(), await create()];
    const { body } = await send('POST', `${id}/backfills/`, range);
    const runs = (await send('GET', `${id}/runs/`)).body.results as { id: string }[];
    const [run = { id: '' }, cancelled = { id: '' }] = runs;
    ids = { id, run: run.id, cancelled: cancelled.id, backfill: String(body.backfill_id), deleted };
    for (const run_id of [run.id, cancelled.id, null])
      await writeLogLine(api.database.pool, {
        team_id: api.projectId,
        batch_export_id: id,
        run_id,
        level: 'INFO',
        message: 'A line',
      });
  });

  /** Method, path, body, status, and the body of the response or the field that an error names. */
  const routes: readonly (readonly [string, string, unknown, number, Fields | string | null])[] = [
    [
      'GET',
      '',
      undefined,
      200,
      { count: expect.any(Number), next: null, previous: null, results: expect.any(Array) },
    ],
    ['POST', '', posthogExport(), 201, { id: expect.any(String) }],
    ['GET', ':id/', undefined, 200, { name: 'Events to S3' }],
    ['PUT', ':id/', {}, 400, 'name'],
    ['PATCH', ':id/', { name: 'Events to S3', team_id: 9 }, 200, { name: 'Events to S3' }],
    ['POST', ':id/pause/', posthogExport(), 200, null],
    ['POST', ':id/unpause/', { ...posthogExport(), backfill: false }, 200, null],
    ['POST', ':id/unpause/', { backfill: 'yes' }, 400, 'backfill'],
    ['POST', ':id/backfill/', { ...posthogExport(), ...range }, 200, null],
    ['GET', ':id/backfills/?ordering=start_at', undefined, 200, { results: expect.any(Array) }],
    ['GET', ':id/backfills/?ordering=-start_at', undefined, 200, { results: expect.any(Array) }],
    ['GET', ':id/backfills/?ordering=size', undefined, 400, 'ordering'],
    [
      'GET',
      ':id/backfills/:backfill/',
      undefined,
      200,
      { batch_export: expect.any(String), progress: { total_runs: 2 } },
    ],
    ['PATCH', ':id/backfills/:backfill/', {}, 405, null],
    ['DELETE', ':id/backfills/:backfill/', undefined, 405, null],
    [
      'GET',
      ':id/runs/?ordering=-data_interval_start&start=-7d&end=-0d&status=Starting',
      undefined,
      200,
      { results: expect.any(Array) },
    ],
    ['GET', ':id/runs/?after=-7d&before=-0d', undefined, 200, { results: expect.any(Array) }],
    ['GET', ':id/runs/?status=FailedBilling', undefined, 400, 'status'],
    [
      'GET',
      ':id/runs/:run/',
      undefined,
      200,
      { batch_export: expect.any(String), status: expect.any(String) },
    ],
    ['POST', ':id/runs/:cancelled/cancel/', {}, 200, { status: 'Cancelled' }],
    ['POST', ':id/runs/:cancelled/cancel/', {}, 409, null],
    ['POST', ':id/runs/:cancelled/retry/', posthogRun, 200, null],
    ['POST', ':id/runs/:run/reset/', {}, 404, null],
    [
      'GET',
      ':id/runs/:cancelled/logs/',
      undefined,
      200,
      { results: expect.arrayContaining([expect.objectContaining({ level: 'INFO' })]) },
    ],
    [
      'GET',
      ':id/runs/:cancelled/logs/?level=info,error&search=cancel&limit=5',
      undefined,
      200,
      { results: expect.any(Array) },
    ],
    ['GET', ':id/runs/:cancelled/logs/?level=loud', undefined, 400, 'level'],
    ['GET', `:id/runs/${randomUUID()}/logs/`, undefined, 404, null],
    [
      'GET',
      ':id/logs/?instance_id=:cancelled&level=INFO&after=-1d&before=-0d',
      undefined,
      200,
      { results: expect.any(Array) },
    ],
    ['GET', `:id/logs/?instance_id=:run&run_id=${randomUUID()}`, undefined, 400, 'instance_id'],
    ['POST', ':id/backfills/:backfill/cancel/', {}, 200, { status: 'Cancelled', progress: null }],
    ...['S3', 'AwsS3', 'S3Compatible'].map(
      (type) =>
        [
          'GET',
          `test/?destination=${type}`,
          undefined,
          200,
          {
            steps: expect.arrayContaining([
              { name: 'bucket', description: expect.any(String), result: null },
            ]),
          },
        ] as const,
    ),
    ['GET', 'test/', undefined, 400, 'destination'],
    ['GET', 'test/?destination=Redshift', undefined, 400, 'destination'],
    ['POST', 'run_test_step_new/', posthogExport({ step: 7 }), 400, 'step'],
    ['POST', 'run_test_step_new/', posthogExport({ step: '1' }), 400, 'step'],
    ['POST', 'run_test_step_new/', { step: 0 }, 400, 'destination'],
    ['POST', ':id/run_test_step/', { step: 1 }, 200, { name: 'write', result: { status: 'Passed' } }],
    ['POST', ':id/run_test_step/', { destination: { type: 'BigQuery' } }, 400, 'destination__type'],
    ['DELETE', ':deleted/', undefined, 204, null],
    ['GET', ':deleted/', undefined, 404, null],
    ['GET', '/api/organizations/1/batch_exports/', undefined, 404, null],
  ];

  it.each(routes)('%s %s %j responds %d', async (method, path, body, status, expected) => {
    const named = path.replace(/:(\w+)/g, (_, name: string) => ids[name as keyof typeof ids]);
    const response = await send(method, named, body);
    const fields = typeof expected === 'string' ? { attr: expected } : (expected ?? {});
    expect([response.status, response.body]).toMatchObject([status, fields]);
    expect(response.text === '').toBe(expected === null && status < 300);
  });

  it('has the lines of one run in its log, and of no other', async () => {
    for (const path of ['runs/:run/logs/', 'logs/?instance_id=:run']) {
      const { body } = await send('GET', `${ids.id}/${path.replace(':run', ids.cancelled)}`);
      const lines = body.results as { instance_id: string }[];
      expect(lines.length).toBeGreaterThan(0);
      expect(new Set(lines.map((line) => line.instance_id))).toEqual(new Set([ids.cancelled]));
    }
  });

  it('runs one step of a test after another, and deletes what it wrote', async () => {
    const { body } = await send('GET', 'test/?destination=S3');
    const steps = body.steps as { name: string; description: string }[];
    expect(steps).toHaveLength(7);
    for (const [step, { name, description }] of steps.entries())
      expect(
        await send('POST', 'run_test_step_new/', posthogExport({ step, destination: destination() })),
      ).toMatchObject({
        status: 200,
        body: { name, description, result: { status: 'Passed', message: null } },
      });
    const { config } = destination();
    const wrong = { type: 'S3', config: { ...config, bucket_name: 'there-is-none' } };
    const first = await send('POST', 'run_test_step_new/', {
      name: 'New',
      interval: 'day',
      destination: wrong,
    });
    expect(first.body).toMatchObject({ name: 'bucket', result: { status: 'Failed' } });
    const later = await send('POST', 'run_test_step_new/', { step: 2, destination: wrong });
    expect(later.body).toMatchObject({ name: 'read back', result: { status: 'Skipped' } });
  });
});
