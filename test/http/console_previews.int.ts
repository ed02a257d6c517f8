import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { minuteAgo } from '../setup/minutes.ts';
import { exportBody, openApiHarness, plantedSecrets, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  // Two events in each of the last 60 minutes, and two of another project.
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select team, gen_random_uuid(), case when n % 2 = 0 then '$pageview' else 'bought' end, 'person ' || n,
       jsonb_build_object('n', n, 'text', repeat(md5(n::text), 4)), moment, moment
     from unnest(array[$1::integer, $2::integer]) team, generate_series(0, 119) n
     cross join lateral (select $3::timestamptz - (n / 2 + 1) * interval '1 minute' + interval '10 seconds' as moment) m`,
    [api.projectId, api.otherProjectId, minuteAgo(0)],
  );
});
afterAll(() => api.close());

interface Preview {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
}

const config = { bucket_name: 'bucket', prefix: 'e/{table}', file_format: 'CSV', compression: 'gzip' };
const body = (more: object = {}) => ({
  interval: 'every 5 minutes',
  destination: { type: 'S3', config },
  ...more,
});
const preview = (given: object, path = '') => api.call('POST', `batch_exports/${path}preview/`, given);
const estimate = (given: object, path = '') => api.call('POST', `batch_exports/${path}estimate/`, given);
/** The values of a column. */
const valuesOf = (given: unknown, column: string): readonly unknown[] => {
  const { columns, rows } = given as Preview;
  const index = columns.findIndex(({ name }) => name === column);
  return rows.map((row) => row[index]);
};

describe('the preview of a new export', () => {
  it('has the keys of the newest interval and its first rows, before the config is complete', async () => {
    const response = await preview(body());
    expect([response.status, response.body]).toMatchObject([
      200,
      {
        manifest: expect.stringMatching(/^s3:\/\/bucket\/e\/_manifests\/<id>\/.*\.json$/),
        file: expect.stringMatching(/^s3:\/\/bucket\/e\/events\/.*\.csv\.gz$/),
      },
    ]);
    const found = response.body as unknown as Preview;
    expect(found.columns.map(({ name }) => name)).toContain('properties');
    expect(found.rows).toHaveLength(10);
    expect(valuesOf(found, 'event').slice(0, 2).sort()).toEqual(['$pageview', 'bought']);
  });

  it('has every digit of a number', async () => {
    const given = body({ dialect_query: 'select toInt(9007199254740993) as n from events' });
    expect((await preview(given)).text).toMatch(/"rows":\[\[9007199254740993\]/);
  });

  it('has the columns and rows of its query and filters', async () => {
    const given = body({
      dialect_query: "select event, properties.n as n from events where event = 'bought'",
      destination: {
        type: 'S3',
        config: {
          filters: [{ type: 'event', key: 'n', operator: 'gt', value: 2 }],
          exclude_events: ['other'],
        },
      },
    });
    const { columns, rows } = (await preview(given)).body as unknown as Preview;
    expect(columns).toEqual([
      { name: 'event', type: 'text' },
      { name: 'n', type: 'text' },
    ]);
    expect(rows.length).toBeGreaterThan(0);
    expect(new Set(rows.map(([event]) => event))).toEqual(new Set(['bought']));
  });

  it('has rows of the last month when the newest interval has none, and none of other projects', async () => {
    const query = "select event, distinct_id from events where distinct_id = 'person 119'";
    const { body: found } = await preview(body({ interval: 'every 1 minutes', dialect_query: query }));
    expect(valuesOf(found, 'distinct_id')).toEqual(['person 119']);
    expect(Date.parse(String(found.rows_since))).toBeLessThan(Date.now() - 29 * 86_400_000);
  });

  it.each([
    ['destination__config__prefix', body({ destination: { type: 'S3', config: { prefix: '/a' } } })],
    ['destination__config__filters__0__type', body({ destination: { config: { filters: [{ key: 'a' }] } } })],
    ['destination__type', body({ destination: { type: 'FTP' } })],
    ['dialect_query', body({ dialect_query: 'select evnt from events' })],
    ['offset_hour', body({ offset_hour: 3 })],
    ['unknown', body({ unknown: 1 })],
    [
      'destination__config__include_events',
      body({ model: 'persons', destination: { config: { include_events: ['a'] } } }),
    ],
  ])('is rejected for an invalid %s', async (attr, given) => {
    const response = await preview(given);
    expect([response.status, response.body.attr]).toEqual([400, attr]);
    expect([(await estimate(given)).body.attr]).toEqual([attr]);
  });

  it('is for keys that may create exports', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    for (const path of ['preview', 'estimate'])
      expect(
        (await api.call('POST', `batch_exports/${path}/`, body(), { authorization: `Bearer ${key}` })).status,
      ).toBe(403);
  });
});

describe('the estimate of a new export', () => {
  it('has the average of the intervals of a day', async () => {
    const { body: found } = await estimate(body({ interval: 'hour' }));
    expect(found).toMatchObject({ intervals: 24, detail: null });
    const rows = Number(found.rows);
    expect(rows).toBeGreaterThan(0);
    expect(found.rows_per_interval).toBeCloseTo(rows / 24);
    expect(found.files_per_interval).toBe(1);
  });

  it('has the size in the format of the files', async () => {
    const sizeOf = async (more: object) =>
      Number((await estimate(body({ destination: { config: more } }))).body.bytes_per_interval);
    const plain = await sizeOf({ file_format: 'JSONLines' });
    const compressed = await sizeOf({ file_format: 'JSONLines', compression: 'zstd' });
    const parquet = await sizeOf({ file_format: 'Parquet', compression: 'zstd' });
    expect(compressed).toBeLessThan(plain / 2);
    expect(parquet).toBeGreaterThan(0);
  });

  it('counts no row twice, and none without rows', async () => {
    const { body: found } = await estimate(
      body({ dialect_query: "select event from events where event = 'gone'" }),
    );
    expect(found).toMatchObject({
      rows: 0,
      rows_per_interval: 0,
      bytes_per_interval: 0,
      files_per_interval: 0,
    });
  });
});

describe('the preview of an existing export', () => {
  it('applies the changes of the body to what is stored, and stores nothing', async () => {
    const id = await api.createExport({
      destination: {
        ...exportBody().destination,
        config: { ...exportBody().destination.config, prefix: 'stored' },
      },
    });
    const { body: found, text } = await preview(
      { destination: { config: { file_format: 'Parquet' } } },
      `${id}/`,
    );
    expect(found.file).toMatch(/^s3:\/\/bucket\/stored\/.*\.parquet$/);
    expect(found.manifest).toContain(id);
    expect(text).not.toContain(plantedSecrets.aws_secret_access_key);
    expect((await estimate({}, `${id}/`)).status).toBe(200);
    expect((await api.call('GET', `batch_exports/${id}/`)).body.destination).toMatchObject({
      config: { file_format: 'JSONLines' },
    });
  });

  it('is not found for an export of another project', async () => {
    expect((await preview({}, '00000000-0000-4000-8000-000000000000/')).status).toBe(404);
  });
});

describe('a table that is mapped to events', () => {
  const table = 'public.orders_log';
  const columns = { event: 'what', distinct_id: 'customer' };
  const map = (given: object, headers?: Record<string, string>) =>
    api.call('POST', 'source/map/', given, headers);
  beforeAll(async () => {
    await api.database.pool.query(
      `create table orders_log (log_no bigint generated always as identity primary key, what text, customer text, payload jsonb,
         happened timestamptz, recorded timestamptz not null default clock_timestamp());
       create table without_times (id integer);
       insert into orders_log (what, customer, payload, happened)
         select 'ordered', 'a@example.com', jsonb_build_object('text', repeat('x', 9000)), now() from generate_series(1, 30)`,
    );
  });

  it('gives view, index and grants as one script, and the first rows with their values cut', async () => {
    expect((await map({})).body).toMatchObject({ tables: expect.arrayContaining([table]), mapping: null });
    const { status, body: found } = await map({ table, columns });
    expect([status, found.mapping]).toMatchObject([
      200,
      { to_choose: [], setting: 'EXPORTD_EVENTS_RELATION', view: 'public.exportd_events', is_read: false },
    ]);
    const { rows, script, roles } = found.mapping as {
      rows: Record<string, string>[];
      script: string;
      roles: { name: string; sql: string }[];
    };
    expect(rows).toHaveLength(20);
    expect(rows[0]).toMatchObject({
      team_id: String(api.projectId),
      event: 'ordered',
      distinct_id: 'a@example.com',
    });
    expect(rows[0]?.properties).toHaveLength(500);
    expect(roles.find(({ name }) => name === 'event')?.sql).toBe('source.what');
    await api.database.pool.query(script.replace(' concurrently', ''));
  });

  it('is for keys with source:read alone: its rows may be of any project', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:write']);
    for (const given of [{}, { table }, { table, columns }]) {
      const { status, body: refused } = await map(given, { authorization: `Bearer ${key}` });
      expect([status, refused.detail]).toEqual([403, expect.stringContaining("scope 'source:read'")]);
    }
    const { body: trail } = await api.call('GET', 'audit/?action=source.map');
    expect(trail.count).toBeGreaterThan(0);
  });

  it.each([
    ['public.without_times', {}, /no table with a column of a time/],
    ['pg_catalog.pg_stat_activity', {}, /no table with a column of a time/],
    ['exportd.projects', {}, /no table with a column of a time/],
    ["x'; select 1", {}, /no table with a column of a time/],
    [table, { event: 'nothing' }, /has no column "nothing"/],
    [table, { what: 'event' }, /Events have no column "what"/],
    [table, { ...columns, uuid: 'customer' }, /cannot read the first rows as events: invalid input syntax/],
  ])('is refused as %s with %j', async (given, chosen, detail) => {
    const { status, body: found } = await map({ table: given, columns: chosen });
    expect([status, found.detail]).toEqual([400, expect.stringMatching(detail)]);
    expect(String(found.detail)).not.toContain('a@example.com');
  });
});

describe('a source that does not have what exports need', () => {
  it('names relations that exportd does not read only to keys with source:read', async () => {
    const other = await openApiHarness({ EXPORTD_EVENTS_RELATION: 'public.no_events' });
    try {
      const { key } = await other.newKey(other.projectId, ['batch_export:write']);
      const authorization = `Bearer ${key}`;
      const check = (search: string, headers?: Record<string, string>) =>
        other.call('GET', `source/check/${search}`, undefined, headers);
      const whole = await check('?table=public.events');
      expect(whole.body).toMatchObject({
        tables: expect.arrayContaining(['public.events']),
        views: [expect.objectContaining({ name: 'public.no_events' })],
      });
      const narrow = await check('', { authorization });
      expect([narrow.status, narrow.body]).toMatchObject([200, { ok: false, tables: [], views: [] }]);
      expect((await check('?table=public.events', { authorization })).status).toBe(403);
    } finally {
      await other.close();
    }
  });

  it('is reported with the statement that PostgreSQL refused, and by its check', async () => {
    const views = await openApiHarness({ EXPORTD_EVENTS_RELATION: 'public.own_events' });
    try {
      await views.database.pool.query(
        'create view own_events as select team_id, event, timestamp from events',
      );
      const refused = await views.call('POST', 'batch_exports/preview/', body());
      expect([refused.status, refused.body]).toMatchObject([
        503,
        { code: 'source_rejected', detail: expect.stringMatching(/uuid.*exportd source check/) },
      ]);
      const { body: report } = await views.call('GET', 'source/check/?model=events');
      expect(report).toMatchObject({
        ok: false,
        findings: expect.arrayContaining([expect.objectContaining({ level: 'error', column: 'uuid' })]),
        views: [expect.objectContaining({ setting: 'EXPORTD_EVENTS_RELATION' })],
      });
    } finally {
      await views.close();
    }
  });

  it('is reported as ready when it has', async () => {
    const { status, body: report } = await api.call('GET', 'source/check/');
    expect([status, report.ok]).toEqual([200, true]);
  });
});
