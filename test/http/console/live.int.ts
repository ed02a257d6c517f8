import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
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

  it('end when the server closes', async () => {
    const closing = await openApiHarness();
    const url = await closing.listen();
    const response = await fetch(`${url}/api/projects/${closing.projectId}/console/live/`, {
      headers: { authorization: `Bearer ${closing.key}` },
    });
    const text = response.text();
    await closing.close();
    expect(await text).toContain('retry:');
  });
});
