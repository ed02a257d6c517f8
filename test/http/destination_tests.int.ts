import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { readTraits, unknownTraits } from '../../src/destination/store_traits.ts';
import { configOf } from '../destination/bucket_requests.ts';
import {
  exportBody,
  openApiHarness,
  plantedSecrets,
  type ApiResponse,
  type ApiHarness,
} from './api_harness.ts';
import { storedText } from '../journal/stored_text.ts';

let api: ApiHarness;
const bucket = useTestBucket();
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_DESTINATION_TEST_TIMEOUT: '60s',
  });
});
beforeEach(() => {
  api.mode = 'decide';
});
afterAll(() => api.close());

const destination = (more: object = {}) => ({ type: 'S3', config: configOf(bucket, more) });
/** A destination that no request may be sent to. */
const unreachable = (more: object = {}) => ({
  type: 'S3',
  config: { bucket_name: 'bucket', region: 'us-east-1', prefix: 'exports', ...plantedSecrets, ...more },
});
/** No trait is as old. */
const maxAgeMs = 86_400_000;
const names = [
  'bucket',
  'write',
  'read back',
  'conditional write',
  'multipart list parts',
  'parts',
  'delete',
];
const statuses = ({ body }: ApiResponse) =>
  (body.steps as { name: string; result: { status: string } }[]).map(({ name, result }) => [
    name,
    result.status,
  ]);
const passed = names.map((name) => [name, 'Passed']);

const storedRows = (): Promise<string> => storedText(api.database.pool, 'jobs', 'journal_events', 'commands');

describe('the test of the destination of a new export', () => {
  it('returns every step and stores nothing', async () => {
    const before = await storedRows();
    const response = await api.call('POST', 'batch_exports/test/', { destination: destination() });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      steps: names.map((name) => ({
        name,
        description: expect.any(String),
        result: expect.objectContaining({ status: 'Passed', message: null }),
      })),
    });
    expect(await storedRows()).toBe(before);
    expect((await api.call('GET', 'batch_exports/')).body.count).toBe(0);
  });

  it('stores the traits of the store for all exports of the project to the location, and of no other', async () => {
    const location = `${new URL(bucket.endpoint).host}/${bucket.bucket}`;
    await api.call('POST', 'batch_exports/test/', { destination: destination() });
    expect(await readTraits(api.database.pool, { team_id: api.projectId, location }, maxAgeMs)).toEqual({
      conditional_put: true,
      conditional_complete: true,
      equal_parts: false,
      missing_key: 'not_found',
      checksums: true,
      versioned: false,
      demands_checksums: null,
      server: expect.stringMatching(/versity/i),
    });
    const other = { team_id: api.projectId + 1, location };
    expect(await readTraits(api.database.pool, other, maxAgeMs)).toEqual(unknownTraits);
    const unreached = destination({ bucket_name: 'there-is-none' });
    await api.call('POST', 'batch_exports/test/', { destination: unreached });
    const { rows } = await api.database.pool.query('select location from exportd.store_traits');
    expect(rows).toEqual([{ location }]);
  });

  it('exists below /api/projects too', async () => {
    const path = `/api/projects/${api.projectId}/batch_exports/test/`;
    const response = await api.call('POST', path, {
      name: 'New',
      interval: 'day',
      destination: destination(),
    });
    expect(statuses(response)).toEqual(passed);
  });

  it('returns the failed step and its reason without secrets', async () => {
    const response = await api.call('POST', 'batch_exports/test/', {
      destination: destination(plantedSecrets),
    });
    expect(statuses(response)).toEqual(names.map((name, at) => [name, at === 0 ? 'Failed' : 'Skipped']));
    for (const secret of Object.values(plantedSecrets)) expect(response.text).not.toContain(secret);
  });

  it.each([
    [{ destination: { type: 'FTP' } }, 'destination__type'],
    [{ destination: unreachable({ prefix: '../up' }) }, 'destination__config__prefix'],
    [{ destination: unreachable({ hello: 1 }) }, 'destination__config__hello'],
    [
      { model: 'persons', destination: unreachable({ include_events: ['a'] }) },
      'destination__config__include_events',
    ],
    [
      {
        destination: unreachable({
          filters: [{ type: 'event', key: 'plan', operator: 'regex', value: '(' }],
        }),
      },
      'destination__config__filters__0__value',
    ],
    [{}, 'destination'],
    [{ destination: unreachable(), colour: 1 }, 'colour'],
  ])('rejects %j for %s before any request to the server', async (body, attr) => {
    const response = await api.call('POST', 'batch_exports/test/', body);
    expect([response.status, response.body.attr]).toEqual([400, attr]);
  });
});

describe("the test of an export's destination", () => {
  it('uses the stored config with its secrets and the changes of the body', async () => {
    const prefix = randomUUID();
    const id = await api.createExport({ destination: destination({ prefix }) });
    expect(statuses(await api.call('POST', `batch_exports/${id}/test/`))).toEqual(passed);
    const before = await api.call('GET', `batch_exports/${id}`);
    const elsewhere = await api.call('POST', `batch_exports/${id}/test/`, {
      destination: { config: { bucket_name: 'there-is-none' } },
    });
    expect(elsewhere.body.steps).toHaveLength(names.length);
    expect(elsewhere.body.steps).toContainEqual(
      expect.objectContaining({
        name: 'bucket',
        result: { status: 'Failed', message: expect.stringContaining('does not exist') },
      }),
    );
    const wrong = await api.call('POST', `batch_exports/${id}/test/`, {
      destination: { config: { aws_secret_access_key: 'wrong' } },
    });
    expect(statuses(wrong)[0]).toEqual(['bucket', 'Failed']);
    expect((await api.call('GET', `batch_exports/${id}`)).text).toBe(before.text);
    expect(statuses(await api.call('POST', `batch_exports/${id}/test/`, {}))).toEqual(passed);
  });

  it('rejects another type and an invalid config', async () => {
    const id = await api.createExport();
    const path = `batch_exports/${id}/test/`;
    const type = await api.call('POST', path, { destination: { type: 'BigQuery' } });
    expect([type.status, type.body.attr]).toEqual([400, 'destination__type']);
    const config = await api.call('POST', path, { destination: { config: { region: 5 } } });
    expect([config.status, config.body.attr]).toEqual([400, 'destination__config__region']);
  });

  it('requires the write scope and an export of the project', async () => {
    const id = await api.createExport();
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    for (const path of ['batch_exports/test/', `batch_exports/${id}/test/`]) {
      const response = await api.call('POST', path, exportBody(), { authorization: `Bearer ${key}` });
      expect(response.status).toBe(403);
    }
    const missing = await api.call('POST', `batch_exports/${randomUUID()}/test/`, {});
    expect(missing.status).toBe(404);
    const { key: otherKey } = await api.newKey(api.otherProjectId);
    const foreign = await api.call(
      'POST',
      `/api/environments/${api.otherProjectId}/batch_exports/${id}/test/`,
      {},
      { authorization: `Bearer ${otherKey}` },
    );
    expect(foreign.status).toBe(404);
  });
});

describe('a test that cannot run', () => {
  it.each([
    ['unreachable', 'temporal_unreachable', 'Temporal cannot be reached'],
    ['silent', 'not_tested', 'No worker'],
  ] as const)('is 503 while Temporal is %s, and its config is deleted', async (mode, code, words) => {
    api.mode = mode;
    const response = await api.call('POST', 'batch_exports/test/', { destination: destination() });
    expect([response.status, response.body.type, response.body.code]).toEqual([503, 'unavailable', code]);
    expect(response.body.detail).toContain(words);
    expect(response.headers['retry-after']).toBe('5');
    const { rows } = await api.database.pool.query('select from exportd.jobs');
    expect(rows).toHaveLength(0);
  });

  it('leaves a stored config for at most an hour after its time', async () => {
    await api.database.pool.query(
      `insert into exportd.jobs (kind, team_id, user_id, target, parameters, is_kept, ends_before)
       select 'destination_test', 1, 1, gen_random_uuid(), '{}', false, clock_timestamp() - age
       from unnest(array[interval '59 minutes', interval '61 minutes']) as age`,
    );
    await api.call('POST', 'batch_exports/test/', { destination: destination() });
    const { rows } = await api.database.pool.query('select from exportd.jobs');
    expect(rows).toHaveLength(1);
  });
});
