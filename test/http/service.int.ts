import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runStatusLabels } from '../../src/domain/run.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const open = { authorization: '' };

describe('the service', () => {
  it('describes every path below both roots and every status label in OpenAPI', async () => {
    const { status, text } = await api.call('GET', '/api/schema', undefined, open);
    expect(status).toBe(200);
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, object>;
      components: { schemas: Record<string, { 'x-enum-labels'?: object }> };
    };
    for (const root of ['projects', 'environments'])
      expect(Object.keys(paths)).toContain(
        `/api/${root}/{project_id}/batch_exports/{batch_export_id}/runs/{id}/retry`,
      );
    expect(components.schemas.BatchExportRunStatus?.['x-enum-labels']).toEqual(runStatusLabels);
  });

  it('reports liveness, readiness and metrics', async () => {
    expect((await api.call('GET', '/healthz', undefined, open)).status).toBe(200);
    expect((await api.call('GET', '/readyz', undefined, open)).body).toEqual({
      status: 'ok',
      database: 'ok',
      temporal: 'ok',
      pid: process.pid,
    });
    await api.call('GET', 'batch_exports/');
    const metrics = await api.call('GET', '/metrics', undefined, open);
    expect(metrics.text).toContain(
      'exportd_http_request_duration_seconds_count{method="GET",route="/api/environments/:project_id/batch_exports",status="200"}',
    );
  });

  it('hides internal errors', async () => {
    await api.database.pool.query('alter table exportd.log_lines rename column message to moved');
    const id = await api.createExport();
    const { status, body } = await api.call('GET', `batch_exports/${id}/logs`);
    await api.database.pool.query('alter table exportd.log_lines rename column moved to message');
    expect([status, body]).toEqual([
      500,
      { type: 'server_error', code: 'error', detail: 'A server error occurred.', attr: null },
    ]);
  });
});
