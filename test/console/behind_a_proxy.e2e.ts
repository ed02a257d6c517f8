import { createServer, request as sendRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, Route } from 'playwright-core';
import { createClient } from '../../src/client/client.ts';
import { exportd } from '../cli/command_line.ts';
import { insertEvents } from '../e2e/rows.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { hourAgo } from '../setup/hours.ts';
import { launchBrowser, openConsole } from './browser.ts';

// exportd below a path of a host that has other services too, as nginx serves it: `proxy_pass http://exportd;` leaves the path
// in, `proxy_pass http://exportd/;` takes it out.

const prefix = '/tools/exportd';

let stack: Stack;
let browser: Browser;
let key: string;
let proxy: Server;
let publicUrl: string;
/** Whether the proxy passes paths on without its own. */
let takesPathOut = false;
/** Requests to other paths of the host, which a browser or a program should not send. */
let strays: string[] = [];

beforeAll(async () => {
  proxy = createServer((request, response) => {
    const { url = '', method, headers } = request;
    if (!new RegExp(`^${prefix}(?=[/?]|$)`).test(url)) {
      strays.push(`${method} ${url}`);
      response.writeHead(404).end('another service');
      return;
    }
    const path = takesPathOut ? url.slice(prefix.length).replace(/^\/?/, '/') : url;
    const passed = sendRequest(stack.baseUrl + path, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    request.pipe(passed);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  publicUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${prefix}`;
  browser = await launchBrowser();
  stack = await startStack('behind-a-proxy', { EXPORTD_BASE_URL: `${publicUrl}/` });
  key = await stack.newKey(['batch_export:read', 'batch_export:write', 'query:read', 'audit:read']);
  await insertEvents(stack.pool, stack.projectId, hourAgo(2), 10);
});
afterAll(async () => {
  await browser.close();
  await stack.stop();
  proxy.closeAllConnections();
  proxy.close();
});

/** An export with one completed run. */
async function createExported(name: string): Promise<string> {
  const id = await stack.createExport({ name, paused: true });
  const range = { start_at: hourAgo(2).toISOString(), end_at: hourAgo(1).toISOString() };
  const backfill = await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  expect(backfill.headers.get('location')).toMatch(`${publicUrl}/api/environments/`);
  await stack.waitForRun(id, (await stack.runs(id))[0]?.id ?? '', 'Completed');
  return id;
}

describe.each([
  ['leaves its path in', false],
  ['takes its path out', true],
])('below the path of a proxy that %s', (_, out) => {
  beforeAll(() => {
    takesPathOut = out;
  });
  beforeEach(() => {
    strays = [];
  });

  it('the console signs in, lists, shows an export and its run, and signs out', async () => {
    const name = `Export ${String(out)}`;
    const id = await createExported(name);
    const opened = await openConsole(browser, publicUrl);
    const { page, problems } = opened;
    try {
      await page.goto(publicUrl);
      await page.getByLabel('API key').fill(key);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('link', { name }).click();
      await page.getByRole('heading', { name }).waitFor();
      expect(page.url()).toBe(`${publicUrl}/exports/${id}`);
      const [cookie] = await page.context().cookies();
      expect([cookie?.name, cookie?.path]).toEqual(['exportd_session', prefix]);
      await page.getByRole('link', { name: 'Runs' }).click();
      await page.locator('table').getByText('Completed').first().waitFor();
      await page.goto(`${publicUrl}/exports/${id}`);
      await page.locator('.calendar-cell.tone-good').first().click();
      await page.getByRole('heading', { name: 'Comparison with the source' }).waitFor();
      expect(page.url()).toMatch(`${publicUrl}/exports/${id}/intervals/`);
      await page.reload();
      await page.getByRole('heading', { name: 'Comparison with the source' }).waitFor();
      // The line for a terminal names the public URL.
      await page.goto(`${publicUrl}/exports/${id}`);
      await page.getByRole('button', { name: 'Unpause from a terminal' }).click();
      const curl = await page.getByRole('dialog').getByLabel('curl command', { exact: true }).inputValue();
      expect(curl).toContain(`${publicUrl}/api/projects/${stack.projectId}/batch_exports/${id}/unpause/`);
      await page.keyboard.press('Escape');
      await page.keyboard.press('g');
      await page.keyboard.press('q');
      await page.getByRole('heading', { name: 'Query' }).waitFor();
      expect(page.url()).toBe(`${publicUrl}/query`);
      expect(await page.locator('.top-links [aria-current=page]').textContent()).toBe('Query');
      await page.getByRole('link', { name: 'exportd', exact: true }).click();
      await page.getByRole('heading', { name: 'Exports' }).waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      expect(await page.context().cookies()).toEqual([]);
      expect([problems, strays]).toEqual([[], []]);
    } finally {
      await opened.close();
    }
  });

  it('an unknown page says so, and other paths of the host are not pages', async () => {
    const opened = await openConsole(browser, publicUrl, { key });
    const { page } = opened;
    try {
      await page.goto(`${publicUrl}/nope`);
      await page.getByText('There is no page at this address.').waitFor();
      await page.getByRole('link', { name: 'Show all exports' }).click();
      await page.getByRole('heading', { name: 'Exports' }).waitFor();
      expect(page.url()).toBe(`${publicUrl}/`);
      expect(strays).toEqual([]);
    } finally {
      await opened.close();
    }
  });

  it('the page of the API sends its requests there, and the document names the path', async () => {
    const opened = await openConsole(browser, publicUrl);
    const { page, problems } = opened;
    const listed = '/api/projects/{project_id}/batch_exports';
    // To show all operations takes seconds for each address; api_docs.e2e.ts does.
    const shorten = async (route: Route): Promise<void> => {
      const response = await route.fetch();
      const document = (await response.json()) as { readonly paths: Readonly<Record<string, unknown>> };
      const json = { ...document, paths: { [listed]: document.paths[listed] } };
      await route.fulfill({ response, json });
    };
    await page.route(`${publicUrl}/api/docs/json`, shorten);
    try {
      for (const path of ['/api/docs', '/api/docs/', '/api/docs/static/index.html']) {
        await page.goto(publicUrl + path);
        await page.getByRole('heading', { name: 'exportd' }).first().waitFor();
        await page.getByText(listed).first().waitFor();
      }
      expect([problems, strays]).toEqual([[], []]);
    } finally {
      await opened.close();
    }
    for (const path of ['/api/schema', '/api/docs/json'])
      expect(await (await fetch(publicUrl + path)).json()).toMatchObject({ servers: [{ url: prefix }] });
  });

  it('lists, created objects and the audit trail have the paths that callers use', async () => {
    const call = async (method: string, path: string, body?: object) => {
      const response = await fetch(`${publicUrl}/api/projects/${stack.projectId}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { location: response.headers.get('location'), body: (await response.json()) as never };
    };
    const { location } = await call('POST', '/batch_exports/', {
      name: 'Created',
      model: 'events',
      interval: 'hour',
      paused: true,
      destination: { type: 'S3', config: { ...configOf(), prefix: `created-${String(out)}` } },
    });
    expect(location).toMatch(`${publicUrl}/api/projects/${stack.projectId}/batch_exports/`);
    const { next } = (await call('GET', '/batch_exports/?limit=1')).body as { next: string };
    expect(next).toBe(`${publicUrl}/api/projects/${stack.projectId}/batch_exports/?limit=1&offset=1`);
    const second = await fetch(next, { headers: { authorization: `Bearer ${key}` } });
    expect(await second.json()).toMatchObject({ previous: expect.stringContaining(`${publicUrl}/api/`) });
    const { results } = (await call('GET', '/audit/?limit=1')).body as { results: { object: string }[] };
    expect(results[0]?.object).toBe(`batch_exports/${location?.split('/').at(-2)}`);
    expect(strays).toEqual([]);
  });

  it('the client and the command line follow lists and create', async () => {
    const client = createClient({ baseUrl: publicUrl, key });
    const names: string[] = [];
    for await (const { name } of client.list('/batch_exports', { query: { limit: 1 } })) names.push(name);
    expect(names).toEqual(expect.arrayContaining([`Export ${String(out)}`, 'Created']));
    const environment = { PATH: process.env.PATH ?? '', EXPORTD_API_KEY: key };
    const listed = await exportd(environment, 'export', 'list', '--base-url', `${publicUrl}/`);
    expect([listed.code, listed.stderr]).toEqual([0, '']);
    expect(listed.stdout).toContain(`Export ${String(out)}`);
    expect(strays).toEqual([]);
  });

  it('another path that begins with the same characters is not exportd', async () => {
    const response = await fetch(`${publicUrl}-2/api/projects`);
    expect([response.status, await response.text()]).toEqual([404, 'another service']);
    const direct = await fetch(`${stack.baseUrl}${prefix}-2/healthz`);
    expect(direct.status).toBe(404);
    // Probes reach the server itself without the path.
    expect((await fetch(`${stack.baseUrl}/healthz`)).status).toBe(200);
  });
});

/** The config of the stack's exports. */
const configOf = (): object => {
  const { bucket } = stack;
  return {
    bucket_name: bucket.bucket,
    region: 'us-east-1',
    endpoint_url: bucket.endpoint,
    aws_access_key_id: bucket.accessKeyId,
    aws_secret_access_key: bucket.secretAccessKey,
  };
};
