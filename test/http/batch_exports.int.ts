import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { withinOneMinute } from '../setup/minutes.ts';
import { until } from '../setup/until.ts';
import { exportBody, openFacade, plantedSecrets, type Answer, type Facade } from './facade.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade();
});
afterAll(() => facade.close());

const config = (answer: Answer) => (answer.body.destination as { config: Record<string, unknown> }).config;

/** Every member of a config that may be shown and need not be given. */
const defaultConfig = {
  role_arn: null,
  external_id: null,
  endpoint_url: null,
  use_virtual_style_addressing: false,
  file_format: 'JSONLines',
  compression: null,
  max_file_size_mb: null,
  on_bad_row: 'fail',
  include_events: [],
  exclude_events: [],
  filters: [],
  encryption: null,
  kms_key_id: null,
};

async function storedSecrets(id: string) {
  const { rows } = await facade.database.pool.query<{ version: number; secrets: Record<string, string> }>(
    'select version, secrets from exportd.destination_configs where batch_export_id = $1 order by version',
    [id],
  );
  return rows;
}

describe('a batch export', () => {
  it('is created with every documented member, its defaults, and no secret', async () => {
    const body = () => exportBody({ name: 'Defaults', interval: undefined, model: undefined });
    // Or an hour that ends before the answer adds to its lag.
    const { seen: created } = await withinOneMinute(async () => {
      const answer = await facade.call('POST', 'batch_exports/', body());
      expect(answer.status).toBe(201);
      return answer;
    });
    expect(created.headers.location).toBe(
      `http://localhost/api/environments/${facade.projectId}/batch_exports/${String(created.body.id)}/`,
    );
    expect(created.body).toEqual({
      id: expect.any(String),
      team_id: facade.projectId,
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
      },
      interval: 'hour',
      timezone: 'UTC',
      offset_hour: 0,
      offset_day: 0,
      paused: false,
      created_at: expect.any(String),
      last_updated_at: expect.any(String),
      last_paused_at: null,
      start_at: null,
      end_at: null,
      latest_runs: [],
      dialect_query: null,
      schema: null,
      lag: { intervals: 0, seconds: 0, last_completed_interval_end: null, gaps: [] },
    });
  });

  it('never answers a secret, wherever an export is shown, refused or listed', async () => {
    const id = await facade.createExport();
    const secret = {
      destination: { config: { aws_secret_access_key: plantedSecrets.aws_secret_access_key } },
    };
    const answers = [
      await facade.call('GET', `batch_exports/${id}`),
      await facade.call('GET', 'batch_exports/?limit=1000'),
      await facade.call('PATCH', `batch_exports/${id}`, secret),
      await facade.call('PATCH', `batch_exports/${id}`, { ...secret, nonsense: 1 }),
      await facade.call('POST', 'batch_exports/', exportBody({ interval: 'fortnight' })),
      await facade.call('GET', `batch_exports/${id}/logs`),
    ];
    for (const { text } of answers)
      for (const planted of Object.values(plantedSecrets)) expect(text).not.toContain(planted);
    const { rows } = await facade.database.pool.query<{ row: string }>(
      `select commands::text as row from exportd.commands union all select e::text from exportd.journal_events e
       union all select c::text from exportd.destination_configs c`,
    );
    expect(rows.filter(({ row }) => Object.values(plantedSecrets).some((one) => row.includes(one)))).toEqual(
      [],
    );
  });

  it('changes nothing when the answer of a GET is sent back', async () => {
    const id = await facade.createExport({ end_at: '2030-01-01T00:00:00+02:00' });
    await facade.call('POST', `batch_exports/${id}/pause`, { last_paused_at: '2026-01-01T00:00:00.123456Z' });
    const before = await facade.call('GET', `batch_exports/${id}`);
    expect(before.body).toMatchObject({
      end_at: '2029-12-31T22:00:00.000Z',
      paused: true,
      last_paused_at: '2026-01-01T00:00:00.123Z',
    });
    const sent = await facade.call('PATCH', `batch_exports/${id}`, before.body);
    expect([sent.status, sent.text]).toEqual([200, before.text]);
    expect((await facade.call('GET', `batch_exports/${id}`)).text).toBe(before.text);
    const { rows } = await facade.database.pool.query(
      `select status from exportd.commands where batch_export_id = $1 and name = 'update'`,
      [id],
    );
    expect(rows).toEqual([{ status: 'no-op' }]);
    expect(await storedSecrets(id)).toHaveLength(1);
  });

  it('is shown with the members of its config that its version was stored without', async () => {
    const id = await facade.createExport();
    await facade.database.pool.query(
      `update exportd.destination_configs set config = config - array['filters', 'on_bad_row', 'role_arn']
       where batch_export_id = $1`,
      [id],
    );
    const shown = await facade.call('GET', `batch_exports/${id}`);
    expect(config(shown)).toMatchObject(defaultConfig);
    const sent = await facade.call('PATCH', `batch_exports/${id}`, shown.body);
    expect(sent.text).toBe(shown.text);
    expect(await storedSecrets(id)).toHaveLength(1);
  });

  it('takes regular expressions that are none in JavaScript', async () => {
    const filters = [{ type: 'event', key: 'plan', operator: 'regex', value: ['(?i)^pro', '[[:<:]]team'] }];
    const id = await facade.createExport();
    const patched = await facade.call('PATCH', `batch_exports/${id}`, {
      destination: { config: { filters } },
    });
    expect([patched.status, config(patched).filters]).toEqual([200, filters]);
  });

  it('cannot keep a compression that a new file format does not have', async () => {
    const id = await facade.createExport();
    const patch = (members: object) =>
      facade.call('PATCH', `batch_exports/${id}`, { destination: { config: members } });
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

  it('is refused where another one writes the same keys, which is named within its project alone', async () => {
    const body = exportBody();
    const first = await facade.call('POST', 'batch_exports/', body);
    const second = await facade.call('POST', 'batch_exports/', body);
    expect([second.status, second.body]).toEqual([
      400,
      {
        type: 'validation_error',
        code: 'invalid_input',
        attr: 'destination__config__prefix',
        detail: `The batch export ${String(first.body.id)} writes the same keys to this bucket; give this one a prefix of its own.`,
      },
    ]);
    const { key } = await facade.newKey(facade.otherProjectId);
    const path = `/api/environments/${facade.otherProjectId}/batch_exports/`;
    const elsewhere = await facade.call('POST', path, body, { authorization: `Bearer ${key}` });
    expect([elsewhere.status, elsewhere.body.detail]).toEqual([
      400,
      'A batch export of another project writes the same keys to this bucket; give this one a prefix of its own.',
    ]);
  });

  it('keeps its secrets and the rest of its config when a PATCH changes one member', async () => {
    const id = await facade.createExport();
    const before = await facade.call('GET', `batch_exports/${id}`);
    const patched = await facade.call('PATCH', `batch_exports/${id}`, {
      team_id: 99,
      destination: { type: 'S3', config: { prefix: 'elsewhere' } },
    });
    expect(patched.status).toBe(200);
    expect(config(patched)).toEqual({ ...config(before), prefix: 'elsewhere' });
    expect(patched.body.team_id).toBe(facade.projectId);
    const [first, second] = await storedSecrets(id);
    expect(second).toEqual({ version: 2, secrets: first?.secrets });
  });

  it('keeps what an update that is still under way changed when another one follows', async () => {
    const id = await facade.createExport();
    const patch = (members: object) =>
      facade.call('PATCH', `batch_exports/${id}`, { destination: { config: members } });
    facade.mode = 'elsewhere';
    const pending = patch({ prefix: 'first' });
    // Once its command is stored it is under way.
    await until(async () => {
      const { rows } = await facade.database.pool.query(
        `select from exportd.commands where batch_export_id = $1 and name = 'update'`,
        [id],
      );
      return rows.length === 1;
    }, 'the first update is stored');
    facade.mode = 'decide';
    const second = await patch({ region: 'eu-central-1' });
    expect((await pending).status).toBe(200);
    expect(config(second)).toMatchObject({ prefix: 'first', region: 'eu-central-1' });
  });

  it('follows absent, null and values that depend on each other', async () => {
    const id = await facade.createExport({
      interval: 'week',
      timezone: 'Europe/Berlin',
      offset_hour: 3,
      offset_day: 1,
      model: 'persons',
      start_at: '2026-01-01T00:00:00Z',
    });
    const patch = async (members: object) => {
      const answer = await facade.call('PATCH', `batch_exports/${id}`, members);
      expect(answer.status).toBe(200);
      return answer.body;
    };
    expect(await patch({ name: 'Renamed' })).toMatchObject({
      name: 'Renamed',
      offset_day: 1,
      model: 'persons',
    });
    // A day of the week means nothing to a day, and no offset means anything to an hour; the zone stays.
    expect(await patch({ interval: 'day' })).toMatchObject({ offset_hour: 3, offset_day: 0 });
    expect(await patch({ interval: 'hour' })).toMatchObject({ offset_hour: 0, timezone: 'Europe/Berlin' });
    expect(
      await patch({ timezone: null, start_at: null, model: null, destination: { config: null } }),
    ).toMatchObject({ timezone: 'UTC', start_at: null, model: 'events', interval: 'hour' });
  });

  it('is paused and unpaused by PATCH as by the endpoints', async () => {
    const id = await facade.createExport();
    const paused = await facade.call('PATCH', `batch_exports/${id}`, { paused: true });
    expect(paused.body).toMatchObject({ paused: true, last_paused_at: expect.any(String) });
    const again = await facade.call('POST', `batch_exports/${id}/pause`);
    expect([again.status, again.text]).toEqual([200, '']);
    expect((await facade.call('GET', `batch_exports/${id}`)).text).toBe(paused.text);
    const unpaused = await facade.call('PATCH', `batch_exports/${id}`, { paused: null });
    expect(unpaused.body.paused).toBe(false);
  });

  it('is gone after DELETE, with everything below it', async () => {
    const id = await facade.createExport();
    const deleted = await facade.call('DELETE', `batch_exports/${id}/`);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    for (const path of ['', '/logs', '/runs', '/backfills'])
      expect((await facade.call('GET', `batch_exports/${id}${path}`)).status).toBe(404);
    expect((await facade.call('DELETE', `batch_exports/${id}`)).status).toBe(404);
    expect((await facade.call('POST', `batch_exports/${id}/pause`)).status).toBe(404);
  });
});

describe('the list of batch exports', () => {
  it('is paged, newest first, with absolute addresses', async () => {
    const other = await openFacade({ EXPORTD_BASE_URL: 'https://exports.example.com/' });
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
