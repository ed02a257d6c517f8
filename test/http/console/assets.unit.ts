import { Script } from 'node:vm';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { fastify } from 'fastify';
import { consoleRoutes } from '../../../src/http/console/console_routes.ts';
import type { HttpApp } from '../../../src/http/route_context.ts';
import { acceptedEncoding } from '../../../src/http/console/console_files.ts';

let app: HttpApp;
beforeAll(() => {
  app = fastify();
  consoleRoutes(app, { EXPORTD_BASE_URL: undefined });
});
afterAll(() => app.close());

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });

describe('the document', () => {
  it.each(['/', '/exports/new', '/exports/1/intervals/2026-11-22T20:00:00Z', '/query'])(
    'at %s preloads no other page',
    async (path) => {
      const response = await get(path);
      expect(response.statusCode).toBe(200);
      const preloaded = [...response.body.matchAll(/modulepreload" href="[^"]+\/(\w+)-/g)].map(
        ([, name]) => name,
      );
      expect(preloaded.filter((name) => name !== 'main' && name !== 'shared')).toHaveLength(1);
      // A module that waits behind others delays the page.
      expect(response.body).not.toContain('fetchpriority');
    },
  );

  it('restricts itself to files of the server', async () => {
    const { headers, body } = await get('/');
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'same-origin' });
    expect(body).not.toMatch(/https?:\/\/|<style|style=| on\w+="/);
    expect(body).not.toMatch(/<script[^>]*>[^<]/);
  });

  it('is validated each time and sent again only when it has changed', async () => {
    const { headers } = await get('/');
    expect(headers['cache-control']).toBe('no-cache');
    const again = await get('/', { 'if-none-match': String(headers.etag) });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    expect((await get('/', { 'if-none-match': '"other"' })).statusCode).toBe(200);
  });

  it('is sent with 404 to a browser that asks for an unknown page, and JSON to everyone else', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const page = await get('/nope/at/all?x=1', { accept });
    expect([page.statusCode, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
    expect(page.body).toContain('/console/assets/');
    for (const [path, accepted] of [
      ['/nope', '*/*'],
      ['/api/nope', accept],
    ] as const) {
      const { statusCode, headers } = await get(path, { accept: accepted });
      expect([statusCode, headers['content-type']]).toEqual([404, 'application/json; charset=utf-8']);
    }
  });

  it('names only files that exist', async () => {
    const { body } = await get('/');
    const paths = [...body.matchAll(/(?:href|src)="(\/console[^"]+)"/g)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(5);
    const missing = await Promise.all(
      paths.map(async (path) => ((await get(path)).statusCode === 200 ? [] : [path])),
    );
    expect(missing.flat()).toEqual([]);
  });
});

describe('files', () => {
  const mainOf = async () => /src="([^"]+main-\w+\.js)"/.exec((await get('/')).body)?.[1] ?? '';

  it('are JavaScript without types, cached without an end', async () => {
    const { headers, body } = await get(await mainOf());
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    expect(() => new Script(body.replaceAll(/\bimport\{.*?\}from".*?";/g, ''))).not.toThrow();
  });

  it.each([
    ['br, gzip', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
  ] as const)('are compressed for browsers that accept %s', async (accepted, encoding, decompress) => {
    const path = await mainOf();
    const plain = await get(path);
    const response = await get(path, { 'accept-encoding': accepted });
    expect(response.headers).toMatchObject({ 'content-encoding': encoding, vary: 'accept-encoding' });
    expect(decompress(response.rawPayload).toString()).toBe(plain.body);
  });

  it.each(['/console/assets/main-OLDHASH0.js', '/console/assets/../../package.json', '/console/assets/'])(
    'are not found at %s',
    async (path) => {
      expect((await get(path)).statusCode).toBe(404);
    },
  );
});

describe('acceptedEncoding', () => {
  it.each([
    [undefined, 'identity'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip;q=0.5', 'gzip'],
    ['br;q=0, gzip;q=1', 'gzip'],
    ['BR', 'br'],
    ['br;q=0.0, gzip; q=0', 'identity'],
  ])('of %p is %s', (header, encoding) => {
    expect(acceptedEncoding(header)).toBe(encoding);
  });
});
