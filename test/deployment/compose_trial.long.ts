import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { launchBrowser, openConsole } from '../console/browser.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type ComposeProject, openComposeProject } from './containers/compose_project.ts';

const hours = 25;
const consoleUrl = 'http://localhost:8000';

describe('the trial with Compose', () => {
  let project: ComposeProject | undefined;
  let browser: Browser | undefined;
  let key = '';
  let id = '';
  beforeAll(async () => {
    browser = await launchBrowser();
    project = await openComposeProject(2);
    await project.up();
  });
  afterAll(async () => {
    await project?.close();
    await browser?.close();
  });

  const opened = (): ComposeProject => {
    if (!project) throw new Error('Compose did not start.');
    return project;
  };
  /** Runs a command with the key of the demo. */
  const withKey = (...args: readonly string[]) =>
    opened().compose(
      'exec',
      '-T',
      '-e',
      `EXPORTD_API_KEY=${key}`,
      '-e',
      'EXPORTD_BASE_URL=http://127.0.0.1:8000',
      'server',
      'exportd',
      ...args,
    );

  it('exports an hour of demo rows, and prints the key of the console', async () => {
    const log = await waitFor(async () => {
      const text = await opened().compose('logs', '--no-color', 'demo');
      return text.includes('API key') ? text : undefined;
    }, 'the demo is ready');
    expect(log).toContain('Manifest: s3://exportd-demo/');
    key = /API key +(exk_[\w-]{43})/.exec(log)?.[1] ?? '';
    expect(key).not.toBe('');
  });

  it('shows the exported hours to a stranger who opens the console with that key', async () => {
    if (!browser) throw new Error('Chromium did not start.');
    const view = await openConsole(browser, consoleUrl, { key });
    const { page } = view;
    try {
      await page.goto('/');
      await page.getByRole('link', { name: 'Demo: events by the hour' }).click();
      await page.getByRole('heading', { name: 'Demo: events by the hour' }).waitFor();
      id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
      await page.getByRole('link', { name: 'Runs' }).click();
      await page.locator('table').getByText('Completed').first().waitFor();
      const links = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allInnerTexts();
      expect(links).toEqual(expect.arrayContaining(['Exports', 'Query', 'Webhooks', 'Keys', 'Audit']));
      expect(view.problems).toEqual([]);
    } finally {
      await view.close();
    }
  });

  it('backfills a day, and every row is there once', async () => {
    const range = ['--start-at', hourAgo(hours + 1).toISOString(), '--end-at', hourAgo(1).toISOString()];
    await withKey('export', 'backfill', id, ...range);
    await waitFor(async () => {
      const { results } = JSON.parse(await withKey('backfill', 'list', id, '--json')) as {
        results: readonly { status: string }[];
      };
      return results.every(({ status }) => status === 'Completed');
    }, 'the backfills are completed');
    expect(await opened().exportd('worker', 'verify', id, '--deep')).toContain(': no findings');
  });

  it('runs exportd as a user without rights, on a file system that is read-only', async () => {
    for (const service of ['server', 'worker']) {
      const script = 'id -u; grep CapEff /proc/self/status; touch /exportd/x || true';
      const output = await opened().compose('exec', '-T', service, 'sh', '-c', script);
      expect(output).toMatch(/^1000\nCapEff:\s+0+\n[^]*Read-only file system/);
    }
  });

  it('writes nothing at the next start, and says how to get another key', async () => {
    await opened().up();
    const log = await waitFor(async () => {
      const text = await opened().compose('logs', '--no-color', 'demo');
      return text.includes('another') ? text : undefined;
    }, 'the demo has ended');
    const line = /docker compose exec server exportd (key create .*)$/m.exec(log)?.[1] ?? '';
    expect(await opened().exportd('server', ...line.trim().split(' '))).toMatch(/exk_[\w-]{43}/);
  });
});
