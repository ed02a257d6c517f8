import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { HttpApp } from '../../../src/http/route_context.ts';
import { createServerlessApp } from '../../../src/http/serverless_app.ts';

let app: HttpApp;
beforeAll(async () => {
  app = await createServerlessApp();
});
afterAll(() => app.close());

describe('the page of the OpenAPI document', () => {
  it.each(['/api/docs', '/api/docs/'])('is served at %s with assets of this server only', async (path) => {
    const { statusCode, headers, body } = await app.inject(path);
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).not.toMatch(/https?:/);
    // Nothing inline: the policy forbids it.
    expect(body).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/);
    const base = new URL(path, 'http://host');
    const assets = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, url = '']) => new URL(url, base).pathname,
    );
    expect(assets.length).toBeGreaterThan(5);
    for (const asset of assets) expect([asset, (await app.inject(asset)).statusCode]).toEqual([asset, 200]);
  });

  it('forbids other hosts, inline code and frames', async () => {
    const { headers } = await app.inject('/api/docs');
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  });

  it('shows each path once, and refers to nothing that its document lacks', async () => {
    const { body } = await app.inject('/api/docs/json');
    const { paths } = JSON.parse(body) as { paths: Record<string, object> };
    const all = JSON.parse((await app.inject('/api/schema')).body) as { paths: Record<string, object> };
    const shown = Object.keys(paths);
    expect(shown).toContain('/api/projects/{project_id}/batch_exports');
    expect(shown.filter((path) => path.startsWith('/api/environments'))).toEqual([]);
    // The document itself is unchanged.
    const ofProject = shown.filter((path) => path.startsWith('/api/projects/{project_id}'));
    expect(Object.keys(all.paths)).toHaveLength(shown.length + ofProject.length);
    expect(shown).toEqual(expect.arrayContaining(['/healthz', '/livez', '/readyz', '/api/users']));
  });

  it('is made once, since it needs no key', async () => {
    const urls = ['/api/schema', '/api/docs/json', '/api/docs/yaml'];
    const read = async () => (await Promise.all(urls.map((url) => app.inject(url)))).map(({ body }) => body);
    const first = await read();
    const made = jest.spyOn(app, 'swagger');
    expect(await read()).toEqual(first);
    expect(made).not.toHaveBeenCalled();
    made.mockRestore();
    expect(first[2]).toBe(first[1]);
  });

  it('is not changed by other methods', async () => {
    const { statusCode, headers } = await app.inject({ method: 'POST', url: '/api/docs' });
    expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD']);
  });
});
