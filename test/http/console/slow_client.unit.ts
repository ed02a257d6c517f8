import { Socket, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import fastify from 'fastify';
import type { LiveChange } from '../../../src/http/console/live_changes.ts';
import { consoleLiveRoutes } from '../../../src/http/console/live_routes.ts';
import type { HttpApp, RouteContext } from '../../../src/http/command_service.ts';
import { waitFor } from '../../setup/wait_for.ts';

const app = fastify() as unknown as HttpApp;
const client = new Socket();
afterEach(async () => {
  client.destroy();
  await app.close();
});

/** More than the buffers of two sockets in all. */
const change: LiveChange = { batch_export_ids: ['x'.repeat(4_000_000)], run_ids: [], backfill_ids: [] };

describe('a client of live changes', () => {
  it('is disconnected when it does not read', async () => {
    const listeners = new Set<(change: LiveChange) => void>();
    app.decorateRequest('caller', null);
    app.addHook('onRequest', (request, _reply, done) => {
      request.caller = {
        key_id: 'key',
        user_id: 1,
        actor_id: 1,
        project_id: 1,
        project_ids: [1],
        session_id: null,
        scopes: [],
      };
      done();
    });
    consoleLiveRoutes(app, {
      liveChanges: {
        subscribe: (_team: number, listener: (change: LiveChange) => void) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
        close: () => Promise.resolve(),
      },
    } as unknown as RouteContext);
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as AddressInfo;
    client.on('error', () => undefined);
    client.connect(port, '127.0.0.1').pause();
    client.write('GET /console/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await waitFor(() => listeners.size === 1, 'the client is subscribed');
    await waitFor(() => {
      for (const listener of listeners) listener(change);
      return listeners.size === 0;
    }, 'the client is disconnected');
    expect(listeners.size).toBe(0);
  });
});
