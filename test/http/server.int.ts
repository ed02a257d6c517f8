import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKeyPair } from '../../src/config/key_ring.ts';
import { readSettings, type Settings, SettingsError } from '../../src/config/settings.ts';
import { type RunningServer, startServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { generousTimeouts } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { exportBody } from './api_harness.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';

let database: TestDatabase;
const servers: RunningServer[] = [];

function settingsWith(more: Record<string, string>): Settings {
  return readSettings({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    EXPORTD_PORT: '0',
    EXPORTD_LOG_LEVEL: 'silent',
    EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
    EXPORTD_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
    ...generousTimeouts,
    EXPORTD_COMMAND_TIMEOUT: '300ms',
    ...more,
  });
}

async function start(more: Record<string, string> = {}): Promise<RunningServer> {
  const settings = settingsWith(more);
  const server = await startServer(settings, createLogger('test', settings));
  servers.push(server);
  return server;
}

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await database.drop();
});

async function post(server: RunningServer, path: string, body: unknown): Promise<Response> {
  const user = await createUser(database.pool, { email: `${randomUUID()}@example.com` });
  const project = await createProject(database.pool, { name: 'Shop' });
  const scopes = ['batch_export:write'];
  const { key } = await createKey(database.pool, { user_id: user.id, project_ids: [project.id], scopes });
  return fetch(`${server.url}/api/projects/${project.id}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

describe('the server', () => {
  it('does not start without a symmetric key, which commands with an Idempotency-Key need', async () => {
    await expect(start({ EXPORTD_ENCRYPTION_KEYS: createKeyPair('servers').public })).rejects.toThrow(
      new SettingsError(
        'EXPORTD_ENCRYPTION_KEYS has no symmetric key (id:base64), from which servers and workers derive signatures. Add one behind the other keys, the same for both.',
      ),
    );
  });

  it('is live and takes commands while no worker polls, and says that none acts on them', async () => {
    const server = await start({ EXPORTD_COMMAND_TIMEOUT: '3s' });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    for (const [use, status] of [
      ['read', 200],
      ['queue', 200],
      ['act', 503],
    ] as const)
      expect([use, (await fetch(`${server.url}/readyz?for=${use}`)).status]).toEqual([use, status]);
    const ready = await fetch(`${server.url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      200,
      {
        status: 'degraded',
        read: 'ok',
        queue: 'ok',
        act: 'No worker polls the task queue.',
        needs_newer: null,
        operator_faults: [],
        pid: process.pid,
      },
    ]);
    const response = await post(server, 'batch_exports/', exportBody());
    const { id, detail } = (await response.json()) as { id: string; detail: string };
    expect([response.status, detail]).toEqual([202, expect.stringContaining('accepted')]);
    expect(response.headers.get('location')).toMatch(new RegExp(`^http.*/batch_exports/${id}/$`));
    const { rows } = await database.pool.query(
      'select batch_export_id, status from exportd.commands order by position desc limit 1',
    );
    expect(rows).toEqual([{ batch_export_id: id, status: 'pending' }]);
  });

  it('starts without Temporal and withdraws commands that it cannot signal', async () => {
    const server = await start({
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '1s',
    });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    const ready = await fetch(`${server.url}/readyz`);
    expect([ready.status, await ready.json()]).toMatchObject([
      503,
      { status: 'unavailable', read: 'ok', queue: 'Temporal cannot be reached.' },
    ]);
    expect((await fetch(`${server.url}/readyz?for=read`)).status).toBe(200);
    expect((await post(server, 'batch_exports/', exportBody())).status).toBe(503);
    const { rows } = await database.pool.query(
      'select status from exportd.commands order by position desc limit 1',
    );
    expect(rows).toEqual([{ status: 'withdrawn' }]);
  });

  it('serves metrics and health on a port of their own, and no metrics to users', async () => {
    const server = await start({ EXPORTD_MONITORING_PORT: '0' });
    const { monitoringUrl } = server;
    expect(monitoringUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const status = async (url: string) => (await fetch(url)).status;
    for (const path of ['/livez', '/healthz', '/readyz?for=read', '/metrics'])
      expect([path, await status(`${monitoringUrl ?? ''}${path}`)]).toEqual([path, 200]);
    for (const [path, expected] of [
      ['/livez', 200],
      ['/healthz', 200],
      ['/readyz?for=read', 200],
      ['/metrics', 404],
    ] as const)
      expect([path, await status(`${server.url}${path}`)]).toEqual([path, expected]);
    const count = 'exportd_http_request_duration_seconds_count{method="GET",route="/healthz"';
    await waitFor(
      async () => (await (await fetch(`${monitoringUrl ?? ''}/metrics`)).text()).includes(count),
      'the metrics have the requests of users',
    );
  });

  it('serves no metrics where a proxy of this machine passes on what others request', async () => {
    const { url } = await start();
    const status = async (path: string) => (await fetch(url + path)).status;
    expect([await status('/livez'), await status('/metrics'), await status('/metrics/')]).toEqual([
      200, 404, 404,
    ]);
  });

  it('closes with connections that browsers open in advance', async () => {
    const settings = settingsWith({});
    const server = await startServer(settings, createLogger('test', settings));
    const unused = connect(Number(new URL(server.url).port), '127.0.0.1').resume();
    await once(unused, 'connect');
    await Promise.all([server.close(), once(unused, 'close')]);
    expect(unused.destroyed).toBe(true);
  });

  it('makes the text of its metrics once for many requests', async () => {
    const { monitoringUrl } = await start({ EXPORTD_MONITORING_PORT: '0' });
    const read = async () => (await fetch(`${monitoringUrl ?? ''}/metrics`)).text();
    const startedAt = performance.now();
    const texts = await Promise.all(Array.from({ length: 50 }, read));
    expect(texts[0]).toContain('process_cpu_seconds_total');
    expect(texts[0]).toMatch(/^exportd_pending_deliveries 0$/m);
    expect(new Set(texts).size).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
  });

  it('authenticates while every other connection to the control database is busy', async () => {
    const server = await start();
    const user = await createUser(database.pool, { email: `${randomUUID()}@example.com` });
    // A project has a share of the connections, so that several use them all.
    const projects = await Promise.all(
      Array.from({ length: 4 }, () => createProject(database.pool, { name: 'Busy' })),
    );
    const keys = await Promise.all(
      projects.map(async ({ id: project }) => {
        const scopes = ['batch_export:read'];
        const { key } = await createKey(database.pool, { user_id: user.id, project_ids: [project], scopes });
        return { project, key };
      }),
    );
    const list = (project: number, key: string) =>
      fetch(`${server.url}/api/projects/${project}/batch_exports/`, {
        headers: { authorization: `Bearer ${key}` },
      });
    const blocker = await database.pool.connect();
    try {
      await blocker.query('begin; lock table exportd.batch_exports in access exclusive mode');
      const waiting = keys.flatMap(({ project, key }) =>
        Array.from({ length: 10 }, () => list(project, key)),
      );
      await waitFor(async () => {
        const { rows } = await database.pool.query<{ busy: number }>(
          `select count(*) as busy from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock' and query like '%batch_exports%'`,
        );
        return (rows[0]?.busy ?? 0) >= 15;
      }, 'the connections are busy');
      const unknown = `exk_${randomBytes(32).toString('base64url')}`;
      expect((await list(projects[0]?.id ?? 0, unknown)).status).toBe(401);
      await blocker.query('rollback');
      expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([200]));
    } finally {
      blocker.release(true);
    }
  });

  it('names the port that is in use', async () => {
    const { port } = new URL((await start()).url);
    const second = start({ EXPORTD_PORT: port });
    await expect(second).rejects.toThrow(SettingsError);
    await expect(second).rejects.toThrow(`Port ${port} on 127.0.0.1 is in use. Set EXPORTD_PORT`);
  });
});
