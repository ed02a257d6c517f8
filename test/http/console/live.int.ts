import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { batchExportDecider } from '../../../src/domain/batch_export.ts';
import { createLiveChanges, type LiveChange } from '../../../src/http/console/live_changes.ts';
import type { Pool } from '../../../src/journal/database.ts';
import { createLogger } from '../../../src/telemetry/logger.ts';
import { openApiHarness, type ApiHarness } from '../api_harness.ts';
import { waitFor } from '../../setup/wait_for.ts';

let api: ApiHarness;
let baseUrl: string;
beforeAll(async () => {
  api = await openApiHarness();
  baseUrl = await api.listen();
});
afterAll(() => api.close());

/** Reads the stream of a project until it ends. */
async function listen(key: string, projectId = api.projectId) {
  const response = await fetch(`${baseUrl}/api/projects/${projectId}/console/live/`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const received = { text: '', hasEnded: false };
  const stop = new AbortController();
  const reading = response.body?.pipeThrough(new TextDecoderStream()).pipeTo(
    new WritableStream({
      write: (text) => {
        received.text += text;
      },
    }),
    { signal: stop.signal },
  );
  const ended = reading
    ?.catch(() => undefined)
    .then(() => {
      received.hasEnded = true;
    });
  return { response, received, stop: () => stop.abort(), ended };
}

const silent = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });

/** Finds no credential ended. */
const authentication = { findEnded: () => Promise.resolve([]) };
const credential = () => ({ key_id: '', project_id: api.projectId, session_id: null });

/** Subscribes to the project's changes, read through `pool`. @returns the ids of changed exports */
function followChanges(pool: { query: (statement: string) => Promise<unknown> }) {
  const received: string[] = [];
  const changes = createLiveChanges(pool as unknown as Pool, { pollMs: 10, logger: silent, authentication });
  changes.subscribe(
    credential(),
    ({ batch_export_ids }: LiveChange) => received.push(...batch_export_ids),
    () => undefined,
  );
  return { received, close: () => changes.close() };
}

describe('live changes', () => {
  it('name the exports and runs of the project that have new events', async () => {
    const own = await listen(api.key);
    expect(own.response.status).toBe(200);
    expect(own.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const foreign = await listen((await api.newKey(api.otherProjectId)).key, api.otherProjectId);
    await waitFor(() => own.received.text.includes('retry:'), 'the stream has started');
    const id = await api.createExport();
    await waitFor(
      async () => {
        // Events that were recorded before the first poll are not sent.
        await api.call('PATCH', `batch_exports/${id}`, { name: `Renamed at ${performance.now()}` });
        return own.received.text.includes(`"batch_export_ids":["${id}"]`);
      },
      () => `the change is received, not: ${own.received.text}`,
    );
    expect(own.received.text).toMatch(/^event: changed$/m);
    expect(foreign.received.text).not.toContain(id);
    own.stop();
    foreign.stop();
  });

  it('need a key of the project that may read exports', async () => {
    const { key } = await api.newKey(api.projectId, ['query:read']);
    expect((await listen(key)).response.status).toBe(403);
    expect((await listen(api.key, api.otherProjectId)).response.status).toBe(404);
  });

  it('are at most 20 for a key and 100 for a project, and others have theirs', async () => {
    const open: Awaited<ReturnType<typeof listen>>[] = [];
    const statusOf = async (key: string, projectId?: number): Promise<number> => {
      const stream = await listen(key, projectId);
      open.push(stream);
      return stream.response.status;
    };
    const keys = await Promise.all(Array.from({ length: 6 }, () => api.newKey(api.projectId)));
    for (const { key } of keys.slice(0, 5)) {
      for (let count = 0; count < 20; count += 1) expect(await statusOf(key)).toBe(200);
      // Also of the first key, when the project may have more.
      expect(await statusOf(key)).toBe(429);
    }
    const rejected = await listen(keys[5]?.key ?? '');
    expect([rejected.response.status, rejected.response.headers.get('retry-after')]).toEqual([429, '60']);
    const other = await api.newKey(api.otherProjectId);
    expect(await statusOf(other.key, api.otherProjectId)).toBe(200);
    open[0]?.stop();
    await waitFor(async () => (await statusOf(keys[0]?.key ?? '')) === 200, 'a closed stream makes place');
    for (const stream of open) stream.stop();
  });

  it('are sent after a failed poll, too', async () => {
    const id = await api.createExport();
    const state = { polls: 0, isFailing: false };
    const { received, close } = followChanges({
      query: (statement: string) => {
        state.polls += 1;
        return state.isFailing ? Promise.reject(new Error('down')) : api.database.pool.query(statement);
      },
    });
    await waitFor(() => state.polls > 2, 'the journal is polled');
    state.isFailing = true;
    const { polls } = state;
    await waitFor(() => state.polls > polls, 'a poll fails');
    await api.call('PATCH', `batch_exports/${id}`, { name: 'Renamed while polls fail' });
    state.isFailing = false;
    await waitFor(() => received.includes(id), 'the change is received');
    await close();
  });

  it('are sent when they are committed after later ones', async () => {
    const [slow, quick] = [await api.createExport(), await api.createExport()];
    const [appended, held] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const committed = api.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, slow);
      await stream.append('pause', [{ type: 'BatchExportPaused', data: { last_paused_at: null } }]);
      appended.resolve(undefined);
      await held.promise;
    });
    await appended.promise;
    await api.call('PATCH', `batch_exports/${quick}`, { name: 'Before the first poll' });
    const state = { polls: 0 };
    const { received, close } = followChanges({
      query: (statement: string) => {
        state.polls += 1;
        return api.database.pool.query(statement);
      },
    });
    await waitFor(() => state.polls > 2, 'the journal is polled');
    held.resolve(undefined);
    await committed;
    await waitFor(() => received.includes(slow), 'the change is received');
    expect(received).not.toContain(quick);
    await close();
  });

  it('end at once for a subscription to a closed server', async () => {
    const changes = createLiveChanges(api.database.pool, { pollMs: 10, logger: silent, authentication });
    await changes.close();
    let hasEnded = false;
    changes.subscribe(
      credential(),
      () => undefined,
      () => (hasEnded = true),
    );
    expect(hasEnded).toBe(true);
  });

  it('have no HEAD, which would hold a connection', async () => {
    expect((await api.call('HEAD', 'console/live')).status).toBe(404);
  });

  it('end when the server closes', async () => {
    const closing = await openApiHarness();
    const url = await closing.listen();
    const response = await fetch(`${url}/api/projects/${closing.projectId}/console/live/`, {
      headers: { authorization: `Bearer ${closing.key}` },
    });
    const text = response.text();
    // Browsers open connections in advance.
    const unused = connect(Number(new URL(url).port), '127.0.0.1').resume();
    await once(unused, 'connect');
    await Promise.all([closing.close(), once(unused, 'close')]);
    expect(await text).toContain('retry:');
  });
});
