import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { storeTraits } from '../../src/destination/store_traits.ts';
import { runStatusLabels } from '../../src/domain/run_state.ts';
import { resolveFaults, storeFault, storeResumption } from '../../src/failures/operator_faults.ts';
import { createOperatorWebhook } from '../../src/notifications/operator_webhook.ts';
import { scopes } from '../../src/http/scopes.ts';
import { createPool, isDatabaseUnavailable } from '../../src/journal/database.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { databaseOf, onServer } from '../setup/template_database.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const open = { authorization: '' };
const quickFaults = readSettings({ DATABASE_URL: 'postgres://localhost/none', EXPORTD_LOG_LEVEL: 'silent' });
const logger = createLogger('test', quickFaults);

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
      read: 'ok',
      queue: 'ok',
      act: 'ok',
      needs_newer: null,
      operator_faults: [],
      pid: process.pid,
    });
    await api.call('GET', 'batch_exports/');
    expect(await api.metrics()).toContain(
      'exportd_http_request_duration_seconds_count{method="GET",route="/api/environments/:project_id/batch_exports",status="200"}',
    );
  });

  it('counts requests that a client without a key can send in few series', async () => {
    await api.call('GET', `/nothing/${randomUUID()}`, undefined, open);
    await api.call('PROPFIND', 'batch_exports/', undefined, open);
    await api.call('GET', 'batch_exports/', undefined, { authorization: 'Bearer exk_unknown' });
    const labels = [
      ...(await api.metrics()).matchAll(/^exportd_http_request_duration_seconds_count(\{.+\})/gm),
    ]
      .map(([, found]) => found)
      .filter((found) => /unmatched|unauthenticated/.test(found ?? ''));
    expect(labels.sort()).toEqual([
      '{method="GET",route="unauthenticated",status="401"}',
      '{method="GET",route="unmatched",status="404"}',
      '{method="other",route="unmatched",status="405"}',
    ]);
  });

  it("reports an operator's fault in readiness, metrics and the runs that wait for it", async () => {
    const { pool } = api.database;
    const fault = { type: 'UndefinedTable', message: 'The source lacks a relation.' };
    const id = await api.createExport();
    const range = { start_at: minuteAgo(2), end_at: minuteAgo(1) };
    const backfill = await api.call('POST', `batch_exports/${id}/backfills/`, range);
    await advanceBackfill(api.journal, quickPolicies(), String(backfill.body.id));
    const { body: list } = await api.call('GET', `batch_exports/${id}/runs/`);
    const run = String((list.results as readonly { id: string }[])[0]?.id);
    await storeFault(pool, logger, run, fault);

    const { status, body } = await api.call('GET', '/readyz');
    expect(status).toBe(200);
    expect(body.operator_faults).toEqual([
      { ...fault, incident_id: expect.any(String), opened_at: expect.any(String), waiting_runs: 1 },
    ]);
    const others = scopes.filter((scope) => scope !== 'installation:admin');
    const tenant = { authorization: `Bearer ${(await api.newKey(api.projectId, others)).key}` };
    for (const headers of [open, tenant, { authorization: 'Bearer exk_unknown' }])
      expect((await api.call('GET', '/readyz', undefined, headers)).body.operator_faults).toEqual([
        { type: fault.type, opened_at: expect.any(String) },
      ]);
    expect(await api.metrics()).toContain('exportd_operator_faults{type="UndefinedTable",dependency=""} 1');
    const path = `batch_exports/${id}/runs/${run}/`;
    const shown = expect.stringMatching(
      /^UndefinedTable: The source lacks a relation\. Waiting for the operator since /,
    );
    expect((await api.call('GET', path)).body).toMatchObject({ status_detail: shown, latest_error: shown });

    await storeResumption(pool, run);
    expect((await api.call('GET', path)).body).toMatchObject({ status_detail: null, latest_error: null });
    await resolveFaults(pool, logger, -1);
    expect((await api.call('GET', '/readyz', undefined, open)).body.operator_faults).toEqual([]);
  });

  it('has no fault of the operator because a store of a project no longer refuses to overwrite', async () => {
    const { pool } = api.database;
    const store = { team_id: api.otherProjectId, location: 'http://127.0.0.1:9/secret-bucket' };
    await storeTraits(pool, store, { conditional_put: true });
    await storeTraits(pool, store, { conditional_put: false });
    const alarm = createFaultAlarm(pool, quickFaults, logger, createOperatorWebhook(quickFaults));
    alarm.start();
    await alarm.stop();
    expect((await api.call('GET', '/readyz')).body.operator_faults).toEqual([]);
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
