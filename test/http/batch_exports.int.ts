import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { defaultConfig } from '../destination/default_config.ts';
import { withinOneMinute } from '../setup/minutes.ts';
import { randomUUID } from 'node:crypto';
import { waitFor } from '../setup/wait_for.ts';
import {
  exportBody,
  openApiHarness,
  plantedSecrets,
  type ApiResponse,
  type ApiHarness,
} from './api_harness.ts';
import { changeStored } from '../setup/change_stored.ts';
import { commandsInWords, readCommands } from '../journal/read_commands.ts';
import { storedText } from '../journal/stored_text.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const config = (response: ApiResponse) =>
  (response.body.destination as { config: Record<string, unknown> }).config;

async function storedSecrets(id: string) {
  const { rows } = await api.database.pool.query<{ version: number; secrets: Record<string, string> }>(
    'select version, secrets from exportd.destination_configs where batch_export_id = $1 order by version',
    [id],
  );
  return rows;
}

describe('a batch export', () => {
  it('is created with every documented field, its defaults and no secret', async () => {
    const body = () => exportBody({ name: 'Defaults', interval: undefined, model: undefined });
    // An hour that ended before the response would add to its lag.
    const { result: created } = await withinOneMinute(async () => {
      const response = await api.call('POST', 'batch_exports/', body());
      expect(response.status).toBe(201);
      return response;
    });
    expect(created.headers.location).toBe(
      `http://localhost/api/environments/${api.projectId}/batch_exports/${String(created.body.id)}/`,
    );
    expect(created.body).toEqual({
      id: expect.any(String),
      team_id: api.projectId,
      name: 'Defaults',
      model: 'events',
      destination: {
        type: 'S3',
        config: {
          bucket_name: 'bucket',
          region: 'us-east-1',
          prefix: expect.any(String),
          ...defaultConfig,
        },
        access_key_id_end: plantedSecrets.aws_access_key_id.slice(-4),
      },
      interval: 'hour',
      timezone: 'UTC',
      offset_hour: null,
      offset_day: null,
      paused: false,
      created_at: expect.any(String),
      last_updated_at: expect.any(String),
      last_paused_at: null,
      start_at: null,
      end_at: null,
      latest_runs: [],
      dialect_query: null,
      retention_days: null,
      schema: null,
      lag: { intervals: 0, seconds: 0, last_completed_interval_end: null, gaps: [] },
      condition: {
        severity: 'ok',
        cause: 'ok',
        summary: expect.stringMatching(
          /^Nothing is exported yet; the first interval ends .* UTC\. Not exported: anything before .* before the export was created\.$/,
        ),
        since: null,
        incident: null,
        owner: 'none',
        affected: { intervals: 0, ranges: [] },
        actions: [],
        coverage: {
          sentence: expect.any(String),
          ranges: [{ start: null, end: expect.any(String), state: 'not_owed', reason: 'before creation' }],
          is_complete: true,
          next_end: expect.any(String),
          backfills: null,
        },
      },
    });
  });

  it('never returns a secret when read, rejected or listed', async () => {
    const id = await api.createExport();
    const secret = {
      destination: { config: { aws_secret_access_key: plantedSecrets.aws_secret_access_key } },
    };
    const responses = [
      await api.call('GET', `batch_exports/${id}`),
      await api.call('GET', 'batch_exports/?limit=1000'),
      await api.call('PATCH', `batch_exports/${id}`, secret),
      await api.call('PATCH', `batch_exports/${id}`, { ...secret, nonsense: 1 }),
      await api.call('POST', 'batch_exports/', exportBody({ interval: 'fortnight' })),
      await api.call('GET', `batch_exports/${id}/logs`),
    ];
    for (const { text } of responses)
      for (const planted of Object.values(plantedSecrets)) expect(text).not.toContain(planted);
    const { pool } = api.database;
    const stored = await storedText(pool, 'commands', 'journal_events', 'destination_configs');
    for (const planted of Object.values(plantedSecrets)) expect(stored).not.toContain(planted);
  });

  it('has the external id of its project when it has a role, and never another', async () => {
    const { body: projects } = await api.call('GET', '/api/projects/');
    const [{ external_id } = { external_id: '' }] = projects.results as { external_id: string }[];
    expect(external_id).toMatch(/^exportd-[0-9a-f-]{36}$/);
    const role_arn = 'arn:aws:iam::123456789012:role/exports';
    const id = await api.createExport();
    const patch = (config: object) => api.call('PATCH', `batch_exports/${id}`, { destination: { config } });
    const config = (fields: object) => ({ body: { destination: { config: fields } } });
    expect(await patch({ role_arn })).toMatchObject(config({ role_arn, external_id }));
    expect(await patch({ role_arn, external_id })).toMatchObject(config({ external_id }));
    expect(await patch({ external_id: 'exportd-of-another' })).toMatchObject({
      status: 400,
      body: { attr: 'destination__config__external_id' },
    });
    expect(await patch({ role_arn: null })).toMatchObject(config({ role_arn: null, external_id: null }));
  });

  it('does not change when the response of a GET is sent back', async () => {
    const id = await api.createExport({ end_at: '2030-01-01T00:00:00+02:00' });
    await api.call('POST', `batch_exports/${id}/pause`, { last_paused_at: '2026-01-01T00:00:00.123456Z' });
    const before = await api.call('GET', `batch_exports/${id}`);
    expect(before.body).toMatchObject({
      end_at: '2029-12-31T22:00:00.000Z',
      paused: true,
      last_paused_at: '2026-01-01T00:00:00.123Z',
    });
    const sent = await api.call('PATCH', `batch_exports/${id}`, before.body);
    expect([sent.status, sent.text]).toEqual([200, before.text]);
    expect((await api.call('GET', `batch_exports/${id}`)).text).toBe(before.text);
    expect(await commandsInWords(api.database.pool, id)).toEqual([
      'create applied',
      'pause applied',
      'update no-op',
    ]);
    expect(await storedSecrets(id)).toHaveLength(1);
  });

  it('has the defaults of config fields that its stored version lacks', async () => {
    const id = await api.createExport();
    await changeStored(
      api.database.pool,
      `update exportd.destination_configs set config = config - array['filters', 'on_bad_row', 'role_arn']
       where batch_export_id = $1`,
      [id],
    );
    const shown = await api.call('GET', `batch_exports/${id}`);
    expect(config(shown)).toMatchObject(defaultConfig);
    const sent = await api.call('PATCH', `batch_exports/${id}`, shown.body);
    expect(sent.text).toBe(shown.text);
    expect(await storedSecrets(id)).toHaveLength(1);
  });

  it('has the retention of its bucket, until it is reset', async () => {
    const id = await api.createExport({ retention_days: 30 });
    const retention = async (changes: object): Promise<unknown> =>
      (await api.call('PATCH', `batch_exports/${id}`, changes)).body.retention_days;
    expect(await retention({ name: 'Renamed' })).toBe(30);
    expect(await retention({ retention_days: 90 })).toBe(90);
    expect(await retention({ retention_days: null })).toBeNull();
  });

  it('accepts regular expressions that are invalid in JavaScript', async () => {
    const filters = [
      { type: 'event', key: 'plan', operator: 'regex', value: ['(?i)^pro', '\\bteam[[:alpha:]]'] },
    ];
    const id = await api.createExport();
    const patched = await api.call('PATCH', `batch_exports/${id}`, {
      destination: { config: { filters } },
    });
    expect([patched.status, config(patched).filters]).toEqual([200, filters]);
  });

  it('cannot keep a compression that a new file format does not support', async () => {
    const id = await api.createExport();
    const patch = (fields: object) =>
      api.call('PATCH', `batch_exports/${id}`, { destination: { config: fields } });
    const parquet = await patch({ file_format: 'Parquet', compression: 'snappy' });
    expect([parquet.status, config(parquet).compression]).toEqual([200, 'snappy']);
    const csv = await patch({ file_format: 'CSV' });
    expect([csv.status, csv.body]).toEqual([
      400,
      {
        type: 'validation_error',
        code: 'invalid_input',
        attr: 'destination__config__compression',
        detail:
          "Compression snappy is not supported for file format CSV. Supported compressions are ['gzip', 'zstd', 'brotli'].",
      },
    ]);
    const both = await patch({ file_format: 'CSV', compression: null });
    expect([both.status, config(both).compression]).toEqual([200, null]);
  });

  it('is rejected when another export of its project writes the same keys, and learns nothing of other projects', async () => {
    const body = exportBody();
    const first = await api.call('POST', 'batch_exports/', body);
    const second = await api.call('POST', 'batch_exports/', body);
    expect([second.status, second.body]).toEqual([
      400,
      {
        type: 'validation_error',
        code: 'invalid_input',
        attr: 'destination__config__prefix',
        detail: `The batch export ${String(first.body.id)} writes the same keys to this bucket. Use a different prefix.`,
      },
    ]);
    const { key } = await api.newKey(api.otherProjectId);
    const path = `/api/environments/${api.otherProjectId}/batch_exports/`;
    const elsewhere = await api.call('POST', path, body, { authorization: `Bearer ${key}` });
    expect(elsewhere.status).toBe(201);
  });

  it('with a table is rejected in the folder of another, with other types of columns, and in a store that overwrites', async () => {
    const prefix = `tables/${randomUUID()}`;
    const table = { file_format: 'Parquet', table_format: 'delta' };
    const bodyOf = (
      config: Readonly<Record<string, unknown>>,
      more: Readonly<Record<string, unknown>> = {},
    ) => {
      const { destination, ...body } = exportBody(more);
      return {
        ...body,
        destination: { ...destination, config: { ...destination.config, ...table, ...config } },
      };
    };
    const dialect_query = 'select uuid, _inserted_at, toInt(1) as n from events';
    const created = await api.call(
      'POST',
      'batch_exports/',
      bodyOf({ prefix: `${prefix}/{year}` }, { dialect_query }),
    );
    expect(created).toMatchObject({ status: 201, body: { destination: { config: table } } });
    const id = String(created.body.id);
    for (const other of [`${prefix}/{month}`, `${prefix}/inner/{year}`, 'tables'])
      expect(await api.call('POST', 'batch_exports/', bodyOf({ prefix: other }))).toMatchObject({
        status: 400,
        body: {
          attr: 'destination__config__prefix',
          detail: expect.stringContaining(`The batch export ${id} has a table in the same folder`),
        },
      });
    await api.database.pool.query(
      `insert into exportd.batch_export_runs (id, position, batch_export_id, team_id, model, config_version, status,
         data_interval_start, data_interval_end, created_at, last_updated_at, allow_shrink, is_scheduled, adopted_by_schedule)
       values ($1, -1, $1, 1, 'events', 1, 'Completed', now(), now(), now(), now(), false, true, false)`,
      [id],
    );
    const patch = (query: string) => api.call('PATCH', `batch_exports/${id}`, { dialect_query: query });
    expect(await patch('select uuid, _inserted_at, toString(event) as n from events')).toMatchObject({
      status: 400,
      body: {
        attr: 'dialect_query',
        detail: expect.stringContaining('The column n of the table has the type'),
      },
    });
    expect(await patch('select uuid, _inserted_at, event as m from events')).toMatchObject({ status: 200 });
    const partitioned = (config: object) =>
      api.call('PATCH', `batch_exports/${id}`, { destination: { config: { prefix, ...config } } });
    expect(await partitioned({ partition_by: ['date'] })).toMatchObject({
      status: 400,
      body: {
        attr: 'destination__config__partition_by',
        detail: expect.stringMatching(
          /has no partitions, and a table keeps its partitions.*use a prefix with another/,
        ),
      },
    });
    expect(
      await partitioned({ partition_by: ['date'], prefix: `partitioned/${randomUUID()}` }),
    ).toMatchObject({ status: 200, body: { destination: { config: { partition_by: ['date'] } } } });
    expect(await api.call('PATCH', `batch_exports/${id}`, { interval: 'week' })).toMatchObject({
      status: 400,
      body: { attr: 'destination__config__partition_by', detail: expect.stringContaining('at most a day') },
    });
    expect(await patch('select uuid, _inserted_at, event as DATE from events')).toMatchObject({
      status: 400,
      body: { attr: 'dialect_query', detail: expect.stringContaining('readers would find two') },
    });
    await api.database.pool.query(
      `insert into exportd.store_traits (team_id, location, conditional_put)
       select team_id, 'aws /overwriting', false from exportd.batch_exports where id = $1`,
      [id],
    );
    expect(await api.call('POST', 'batch_exports/', bodyOf({ bucket_name: 'overwriting' }))).toMatchObject({
      status: 400,
      body: { attr: 'destination__config__table_format' },
    });
  });

  it('keeps its secrets and the rest of its config when a PATCH changes one field', async () => {
    const id = await api.createExport();
    const before = await api.call('GET', `batch_exports/${id}`);
    const patched = await api.call('PATCH', `batch_exports/${id}`, {
      team_id: 99,
      destination: { type: 'S3', config: { prefix: 'elsewhere' } },
    });
    expect(patched.status).toBe(200);
    expect(config(patched)).toEqual({ ...config(before), prefix: 'elsewhere' });
    expect(patched.body.team_id).toBe(api.projectId);
    const [first, second] = await storedSecrets(id);
    expect(second).toEqual({ version: 2, secrets: first?.secrets });
  });

  it('keeps the changes of a pending update when another update follows', async () => {
    const id = await api.createExport();
    const patch = (fields: object) =>
      api.call('PATCH', `batch_exports/${id}`, { destination: { config: fields } });
    api.mode = 'deferred';
    const pending = patch({ prefix: 'first' });
    // The update is pending once its command is stored.
    await waitFor(async () => {
      const commands = await readCommands(api.database.pool, id);
      return commands.some(({ name }) => name === 'update');
    }, 'the first update is stored');
    api.mode = 'decide';
    const second = await patch({ region: 'eu-central-1' });
    expect((await pending).status).toBe(200);
    expect(config(second)).toMatchObject({ prefix: 'first', region: 'eu-central-1' });
  });

  it('keeps omitted fields, resets null fields and resets dependent fields', async () => {
    const id = await api.createExport({
      interval: 'week',
      timezone: 'Europe/Berlin',
      offset_hour: 3,
      offset_day: 1,
      model: 'persons',
      start_at: '2026-01-01T00:00:00Z',
    });
    const patch = async (fields: object) => {
      const response = await api.call('PATCH', `batch_exports/${id}`, fields);
      expect(response.status).toBe(200);
      return response.body;
    };
    expect(await patch({ name: 'Renamed' })).toMatchObject({
      name: 'Renamed',
      offset_day: 1,
      model: 'persons',
    });
    // A daily export has no day offset, an hourly export no offset; the time zone stays.
    expect(await patch({ interval: 'day' })).toMatchObject({ offset_hour: 3, offset_day: null });
    expect(await patch({ interval: 'hour' })).toMatchObject({
      offset_hour: null,
      offset_day: null,
      timezone: 'Europe/Berlin',
    });
    expect(
      await patch({ timezone: null, start_at: null, model: null, destination: { config: null } }),
    ).toMatchObject({ timezone: 'UTC', start_at: null, model: 'events', interval: 'hour' });
  });

  it('is paused and unpaused by PATCH as by the actions', async () => {
    const id = await api.createExport();
    const paused = await api.call('PATCH', `batch_exports/${id}`, { paused: true });
    expect(paused.body).toMatchObject({ paused: true, last_paused_at: expect.any(String) });
    const again = await api.call('POST', `batch_exports/${id}/pause`);
    expect([again.status, again.text]).toEqual([200, '']);
    expect((await api.call('GET', `batch_exports/${id}`)).text).toBe(paused.text);
    const unpaused = await api.call('PATCH', `batch_exports/${id}`, { paused: null });
    expect(unpaused.body.paused).toBe(false);
  });

  it('is not found after DELETE, nor is anything below it', async () => {
    const id = await api.createExport();
    const deleted = await api.call('DELETE', `batch_exports/${id}/`);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    for (const path of ['', '/logs', '/runs', '/backfills'])
      expect((await api.call('GET', `batch_exports/${id}${path}`)).status).toBe(404);
    expect((await api.call('DELETE', `batch_exports/${id}`)).status).toBe(404);
    expect((await api.call('POST', `batch_exports/${id}/pause`)).status).toBe(404);
  });
});

describe('the list of batch exports', () => {
  it('has pages that fit into a response, and misses none', async () => {
    const other = await openApiHarness();
    try {
      const include_events = Array.from({ length: 850 }, (_, index) => `${index}`.padEnd(290, 'x'));
      const { destination } = exportBody();
      const ids: string[] = [];
      for (let index = 0; index < 10; index += 1) {
        const config = { ...destination.config, prefix: `wide/${index}`, include_events };
        ids.push(await other.createExport({ destination: { ...destination, config } }));
      }
      const listed: string[] = [];
      let path: string | null = 'batch_exports/?limit=1000';
      while (path !== null) {
        const { body, text } = await other.call('GET', path);
        expect(text.length).toBeLessThan(2_500_000);
        listed.push(...(body.results as { id: string }[]).map(({ id }) => id));
        const next = body.next as string | null;
        path = next === null ? null : next.slice(new URL(next).origin.length);
      }
      expect(listed).toEqual(ids.toReversed());
    } finally {
      await other.close();
    }
  });

  it('is paged, newest first, with absolute URLs', async () => {
    const other = await openApiHarness({ EXPORTD_BASE_URL: 'https://exports.example.com/' });
    try {
      const names = ['one', 'two', 'three'];
      for (const name of names) await other.createExport({ name });
      const first = await other.call('GET', 'batch_exports/?limit=2');
      const base = `https://exports.example.com/api/environments/${other.projectId}/batch_exports/`;
      expect(first.body).toMatchObject({ count: 3, next: `${base}?limit=2&offset=2`, previous: null });
      const second = await other.call('GET', `batch_exports/?limit=2&offset=2`);
      expect(second.body).toMatchObject({ count: 3, next: null, previous: `${base}?limit=2` });
      const listed = [first, second].flatMap(({ body }) => body.results as { name: string }[]);
      expect(listed.map(({ name }) => name)).toEqual([...names].reverse());
    } finally {
      await other.close();
    }
  });
});
