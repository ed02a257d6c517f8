import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runStatusLabels } from '../../src/domain/run.ts';
import { createPool } from '../../src/journal/database.ts';
import { isDatabaseUnavailable } from '../../src/journal/database_errors.ts';
import { databaseOf, onServer } from '../setup/template_database.ts';
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

  it('responds 503 while the control database refuses the login or is missing', async () => {
    const { url } = api.database;
    const [server, name] = [databaseOf(url, 'postgres'), new URL(url).pathname.slice(1)];
    await onServer(
      server,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
    await onServer(server, `alter database ${name} rename to ${name}_moved`);
    const missing = await api.call('GET', 'batch_exports/');
    await onServer(server, `alter database ${name}_moved rename to ${name}`);
    expect([missing.status, missing.body.code]).toEqual([503, 'unavailable']);
    expect((await api.call('GET', 'batch_exports/')).status).toBe(200);

    const refused = new URL(url);
    refused.username = `${name}_refused`;
    await onServer(server, `create role ${refused.username} nologin`);
    const pool = createPool(refused.href, { max: 1 });
    const failure = await pool.query('select').catch((error: unknown) => error);
    await pool.end();
    await onServer(server, `drop role ${refused.username}`);
    expect(failure).toMatchObject({ code: expect.stringMatching(/^28/) });
    expect(isDatabaseUnavailable(failure)).toBe(true);
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
