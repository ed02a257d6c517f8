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
    const nothing = { changes: [], secrets: [], consequences: [] };
    expect(await check({ interval: 'hour', paused: false })).toEqual([200, nothing]);
    const config = { bucket_name: 'another', ...plantedSecrets, aws_secret_access_key: 'another' };
    // Its days begin at 18:15 UTC, where no hour ends: an interval always connects both schedules.
    const schedule = { interval: 'day', timezone: 'Asia/Kathmandu' };
    expect(await check({ ...schedule, paused: true, destination: { config } })).toEqual([
      200,
      {
        changes: [
          'interval',
          'timezone',
          'paused',
          'destination__config__bucket_name',
          'destination__config__aws_secret_access_key',
        ],
        secrets: ['destination__config__aws_secret_access_key'],
        consequences: [
          expect.stringMatching(/^One interval from .* connects the old/),
          expect.stringMatching(/stay in .* below/),
        ],
      },
    ]);
    const [status, error] = await check({ timezone: 'Mars' });
    expect([status, error]).toEqual([400, expect.objectContaining({ attr: 'timezone' })]);
    expect(await stored()).toEqual(before);
  });

  it('says what an update does to intervals, files and readers', async () => {
    const id = await api.createExport({ interval: 'day' });
    const consequencesOf = async (body: object) =>
      (await api.call('POST', `batch_exports/${id}/check/`, body)).body.consequences as string[];
    expect(
      await consequencesOf({ name: 'Other', destination: { config: { encryption: 'AES256' } } }),
    ).toEqual([]);
    // Up to the last hour, which is due at once; at midnight UTC the day is whole.
    const midnight = new Date();
    midnight.setUTCHours(0, 0, 0, 0);
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const bridge = `One interval from ${midnight.toISOString()} to ${new Date(hour).toISOString()}`;
    const found = await consequencesOf({ interval: 'hour' });
    expect(found.map((sentence) => sentence.split(' connects')[0])).toEqual(
      hour === midnight.getTime() ? [] : [bridge],
    );
    // Its days begin at 18:15.
    expect(await consequencesOf({ timezone: 'Asia/Kathmandu' })).toEqual([
      expect.stringMatching(/^One interval from \S+Z to \S+(18:15|00:00):00\.000Z connects/),
    ]);
    expect(await consequencesOf({ destination: { config: { prefix: 'other' } } })).toEqual([
      expect.stringMatching(/^Files that are already exported stay in .* below .*: their readers/),
    ]);
    expect(await consequencesOf({ destination: { config: { file_format: 'CSV' } } })).toEqual([
      expect.stringMatching(/^Exported files stay as they are/),
    ]);
    expect(await consequencesOf({ destination: { config: { on_missing_rows: 'follow' } } })).toEqual([
      expect.stringMatching(/deletes rows from the bucket/),
    ]);
  });

  it('is followed by a response that names the end of the access key, which can be sent back', async () => {
    const id = await api.createExport();
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    const end = plantedSecrets.aws_access_key_id.slice(-4);
    expect(body.destination).toMatchObject({ access_key_id_end: end });
    const { destination } = body;
    expect((await api.call('PATCH', `batch_exports/${id}/`, { destination })).status).toBe(200);
    const aws_access_key_id = 'short';
    const given = { destination: { config: { aws_access_key_id, aws_secret_access_key: 'another' } } };
    expect((await api.call('PATCH', `batch_exports/${id}/`, given)).body.destination).toMatchObject({
      access_key_id_end: null,
    });
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
