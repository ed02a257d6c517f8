import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportBody, openFacade, plantedSecrets, type Facade } from './facade.ts';

let facade: Facade;
beforeAll(async () => {
  facade = await openFacade();
});
afterAll(() => facade.close());

describe('a batch export', () => {
  it('is created with every documented member, its defaults, and no secret', async () => {
    const body = exportBody({ name: 'Defaults', interval: undefined, model: undefined });
    const created = await facade.call('POST', 'batch_exports/', body);
    expect(created.status).toBe(201);
    expect(created.headers.location).toBe(
      `http://localhost:80/api/environments/${facade.projectId}/batch_exports/${String(created.body.id)}/`,
    );
    expect(created.body).toEqual({
      id: expect.any(String),
      team_id: facade.projectId,
      name: 'Defaults',
      model: 'events',
      destination: {
        type: 'S3',
        config: expect.objectContaining({
          bucket_name: 'bucket',
          file_format: 'JSONLines',
          compression: null,
        }),
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
      lag: { intervals: 0, seconds: 0, last_completed_interval_end: null },
    });
    for (const secret of Object.values(plantedSecrets)) expect(created.text).not.toContain(secret);
  });
});
