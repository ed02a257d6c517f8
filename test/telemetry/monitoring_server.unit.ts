import { afterEach, describe, expect, it } from '@jest/globals';
import { SettingsError } from '../../src/config/settings.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { type MonitoringServer, startMonitoringServer } from '../../src/telemetry/monitoring_server.ts';

const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const ready = { status: 'ok', source: 'ok' };
const settings = { host: 'EXPORTD_WORKER_HTTP_HOST', port: 'EXPORTD_WORKER_HTTP_PORT' };
const servers: MonitoringServer[] = [];

async function start(readiness = ready, port = 0): Promise<string> {
  const monitor = {
    readiness: (query: URLSearchParams) =>
      Promise.resolve({ isReady: readiness.status === 'ok' || query.get('for') === 'read', body: readiness }),
    metrics: () => Promise.resolve('exportd_build_info 1\n'),
  };
  const server = await startMonitoringServer({ host: '127.0.0.1', port, settings }, monitor, logger);
  servers.push(server);
  return server.url;
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

describe('the HTTP listener for probes and Prometheus', () => {
  it.each([
    { path: '/healthz', status: 200, body: `{"status":"ok","pid":${process.pid}}` },
    { path: '/livez', status: 200, body: `{"status":"ok","pid":${process.pid}}` },
    { path: '/readyz/?verbose', status: 200, body: JSON.stringify({ ...ready, pid: process.pid }) },
    { path: '/metrics', status: 200, body: 'exportd_build_info 1\n' },
    { path: '/', status: 404, body: expect.stringContaining('/livez, /readyz and /metrics') },
  ])('responds $status to $path', async ({ path, status, body }) => {
    const response = await fetch((await start()) + path);
    expect([response.status, await response.text()]).toEqual([status, body]);
  });

  it('responds 503 and names the problem while the process is not ready', async () => {
    const source = 'The source cannot be reached.';
    const url = await start({ status: 'unavailable', source });
    const response = await fetch(`${url}/readyz`);
    expect([response.status, await response.json()]).toEqual([503, expect.objectContaining({ source })]);
    expect((await fetch(`${url}/readyz?for=read`)).status).toBe(200);
  });

  it('responds to HEAD without a body, and rejects other methods', async () => {
    const url = await start();
    const head = await fetch(`${url}/readyz`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect((await fetch(`${url}/livez`, { method: 'POST' })).status).toBe(405);
  });

  it('names the setting when its port is in use', async () => {
    const { port } = new URL(await start());
    const error: unknown = await start(ready, Number(port)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SettingsError);
    expect(String(error)).toContain('EXPORTD_WORKER_HTTP_PORT');
  });
});
