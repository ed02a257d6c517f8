import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportBody, openApiHarness, plantedSecrets, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

/** How much the control database holds that a request could have changed. */
async function stored(): Promise<unknown> {
  const { rows } = await api.database.pool.query(
    `select (select count(*) from exportd.commands) as commands, (select count(*) from exportd.destination_configs) as configs`,
  );
  return rows;
}

describe('a check', () => {
  it('says what an update would change, and changes nothing', async () => {
    const id = await api.createExport({ interval: 'hour' });
    const before = await stored();
    const check = async (body: object) => {
      const { status, body: response } = await api.call('POST', `batch_exports/${id}/check/`, body);
      return [status, response];
    };
    expect(await check({ interval: 'hour', paused: false })).toEqual([200, { changes: [], secrets: [] }]);
    const config = { bucket_name: 'another', ...plantedSecrets, aws_secret_access_key: 'another' };
    expect(await check({ interval: 'day', paused: true, destination: { config } })).toEqual([
      200,
      {
        changes: [
          'interval',
          'paused',
          'destination__config__bucket_name',
          'destination__config__aws_secret_access_key',
        ],
        secrets: ['destination__config__aws_secret_access_key'],
      },
    ]);
    const [status, error] = await check({ timezone: 'Mars' });
    expect([status, error]).toEqual([400, expect.objectContaining({ attr: 'timezone' })]);
    expect(await stored()).toEqual(before);
  });

  it('validates a new export and creates none', async () => {
    const before = await stored();
    const { status, body } = await api.call('POST', 'batch_exports/check/', exportBody());
    expect(status).toBe(200);
    expect(body.changes).toEqual(expect.arrayContaining(['name', 'interval', 'destination__config__prefix']));
    expect(body.secrets).toEqual([
      'destination__config__aws_access_key_id',
      'destination__config__aws_secret_access_key',
    ]);
    const destination = { type: 'S3', config: { color: 'red' } };
    const invalid = await api.call('POST', 'batch_exports/check/', exportBody({ destination }));
    expect(invalid.status).toBe(400);
    expect(await stored()).toEqual(before);
  });

  it('needs the right to replace secrets, because it compares them', async () => {
    const id = await api.createExport();
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const headers = { authorization: `Bearer ${key}` };
    expect((await api.call('POST', `batch_exports/${id}/check/`, {}, headers)).status).toBe(403);
  });
});

describe('an update with the stored secrets', () => {
  it('stores no new config', async () => {
    const id = await api.createExport();
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    const before = await stored();
    const destination = { type: 'S3', config: plantedSecrets };
    const updated = await api.call('PATCH', `batch_exports/${id}/`, { destination });
    expect([updated.status, updated.body.last_updated_at]).toEqual([200, body.last_updated_at]);
    expect(await stored()).toEqual([{ ...(before as [object])[0], commands: expect.any(Number) }]);
  });
});
