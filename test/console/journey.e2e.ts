import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { Browser, Locator, Page } from 'playwright-core';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { insertEvents } from '../e2e/rows.ts';
import { type Stack, startStack } from '../e2e/stack.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type ConsolePage, findViolations, launchBrowser, openConsole } from './browser.ts';

const root = join(import.meta.dirname, '../..');
const rowsPerHour = 40;
const hours = 3;

let stack: Stack;
let browser: Browser;
let own: ConsolePage;
let page: Page;
let monitoringUrl: string;
let key: string;
/** The path of the export that the first test creates. */
let exportPath: string;

beforeAll(async () => {
  const { monitoring } = await assignPorts(
    join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.ports.json`),
    ['monitoring'],
  );
  monitoringUrl = `http://127.0.0.1:${monitoring}`;
  const settings = { EXPORTD_MONITORING_PORT: String(monitoring) };
  // One after the other: what has started is known when the other throws.
  browser = await launchBrowser();
  stack = await startStack('console', settings);
  key = await stack.newKey(['batch_export:read', 'batch_export:write', 'dashboard:read', 'query:read']);
  for (let hour = 1; hour <= hours; hour += 1)
    await insertEvents(stack.pool, stack.projectId, hourAgo(hour), rowsPerHour);
  own = await openConsole(browser, stack.baseUrl);
  ({ page } = own);
});
afterAll(async () => {
  await browser.close();
  await stack.stop();
});

const button = (name: string | RegExp, within: Page | Locator = page): Locator =>
  within.getByRole('button', { name, exact: typeof name === 'string' });
const toast = (text: string): Promise<void> => page.getByRole('status').getByText(text).first().waitFor();
const fill = (attr: string, value: string): Promise<void> =>
  page.locator(`[data-attr="${attr}"]`).fill(value);

/**
 * Expects that the page as it is now breaks no rule of accessibility, and that nothing failed in it. The other files look at all
 * pages; this is for what only the journey shows.
 */
async function expectSoundPage(what: string): Promise<void> {
  expect({ what, violations: await findViolations(page), problems: own.problems }).toEqual({
    what,
    violations: [],
    problems: [],
  });
}

describe('the way through the console', () => {
  it('signs in with a key, and says which key is wrong', async () => {
    await page.goto('/');
    await page.getByLabel('API key').fill('exk_wrong');
    await button('Sign in').click();
    await page.getByText('This API key is unknown, expired or revoked.').waitFor();
    await expectSoundPage('sign in');
    // Its line for a lost key works as it is copied.
    const line = await page.getByLabel('command that creates a key', { exact: true }).inputValue();
    expect(line).toMatch(/^npx exportd /);
    expect(await stack.runCommand(root, ...line.split(' ').slice(2))).toMatch(/exk_[\w-]{43}/);
    await page.getByLabel('API key').fill(key);
    await button('Sign in').click();
    await page.getByText('No exports yet').waitFor();
    expect(own.problems).toEqual([]);
    // Scripts of the page cannot read the key.
    expect(await page.evaluate<string>('document.cookie')).toBe('');
  });

  it('creates an export with a test of its destination', async () => {
    await page.getByRole('link', { name: 'New export' }).first().click();
    await page.getByRole('heading', { name: 'New export' }).waitFor();
    const { bucket } = stack;
    await fill('name', 'Events of the console');
    await fill('destination__config__bucket_name', bucket.bucket);
    await fill('destination__config__region', 'us-east-1');
    await fill('destination__config__prefix', 'console/{year}/{month}');
    await fill('destination__config__endpoint_url', bucket.endpoint);
    await fill('destination__config__aws_access_key_id', bucket.accessKeyId);
    await fill('destination__config__aws_secret_access_key', bucket.secretAccessKey);
    await button('Test destination').click();
    await page.locator('.test-steps').waitFor();
    expect(await page.locator('.test-steps .tone-danger').count()).toBe(0);
    expect(own.problems).toEqual([]);
    await button('Create export').click();
    await page.getByRole('heading', { name: 'Events of the console' }).waitFor();
    exportPath = new URL(page.url()).pathname;
    expect(own.problems).toEqual([]);
  });

  it('backfills with a dry run, and shows how the runs get on', async () => {
    // A slow source answers when the person has filled in the fields.
    const filledIn = Promise.withResolvers<undefined>();
    await page.route('**/first_row/', async (route) => {
      await filledIn.promise;
      await route.continue();
    });
    await page.goto(`${exportPath}?tab=backfills`);
    await button('Backfill…').click();
    const dialog = page.getByRole('dialog');
    const toField = (time: Date) => time.toISOString().slice(0, 16);
    await dialog.getByLabel('From (UTC)').fill(toField(hourAgo(hours)));
    await dialog.getByLabel('To (UTC)').fill(toField(hourAgo(0)));
    const coverage = page.waitForResponse(/\/coverage\/\?.*first_row_at=/);
    filledIn.resolve(undefined);
    await coverage;
    await page.unrouteAll();
    await button('Dry run', dialog).click();
    await dialog.getByText(`${hours} intervals`).waitFor();
    await dialog.getByText(`${hours * rowsPerHour} rows`).waitFor();
    expect(own.problems).toEqual([]);
    await button('Start backfill', dialog).click();
    await toast('The backfill has started.');
    // Without a reload: the page polls.
    await page.getByText(`${hours} of ${hours} intervals, ${hours * rowsPerHour} rows`).waitFor();
    await page.getByRole('link', { name: 'Runs' }).click();
    await page
      .locator('table')
      .getByText('Completed')
      .nth(hours - 1)
      .waitFor();
    expect(own.problems).toEqual([]);
  });

  it('pauses and unpauses, and shows the same as lines for a terminal', async () => {
    await page.goto(exportPath);
    await button('Pause from a terminal').click();
    const dialog = page.getByRole('dialog');
    const id = exportPath.split('/').at(-1) ?? '';
    expect(await dialog.getByLabel('exportd command', { exact: true }).inputValue()).toBe(
      `npx exportd export pause ${id}`,
    );
    const curl = await dialog.getByLabel('curl command', { exact: true }).inputValue();
    expect(curl).toContain(`${stack.baseUrl}/api/projects/${stack.projectId}/batch_exports/${id}/pause/`);
    expect(curl).not.toContain(key);
    await page.keyboard.press('Escape');
    await button('Pause').click();
    await toast('Paused. Active runs end as usual.');
    await button('Unpause').waitFor();
    expect((await stack.call('GET', `/batch_exports/${id}/`)).body.paused).toBe(true);
    await button('Unpause').click();
    await toast('Unpaused.');
  });

  it('opens the comparison of an interval and exports it again', async () => {
    await page.locator('.calendar-cell.tone-good').first().click();
    await page.getByRole('heading', { name: 'Comparison with the source' }).waitFor();
    await page.getByText('The files have the rows of the source').waitFor();
    expect(own.problems).toEqual([]);
    await button('Retry').first().click();
    await toast('A run of the interval was created.');
    await page
      .getByText(/generation 2/i)
      .first()
      .waitFor();
    await page.locator('.manifest pre').getByText('"generation": 2').waitFor({ state: 'attached' });
  });

  it('verifies the files of an interval, and names what is damaged', async () => {
    const items = page.locator('.history > li');
    const verified = async (number: number): Promise<Locator> => {
      await button('Verify').click();
      await items
        .nth(number - 1)
        .getByText(/^Compared/)
        .waitFor();
      return items.first();
    };
    const rows = `${rowsPerHour} rows in 1 file`;
    const whole = await verified(1);
    await whole.getByText(rows).getByText('no row is missing, duplicate or unexpected').waitFor();

    const { bucket, client } = stack.bucket;
    const { body } = await stack.call(
      'GET',
      `/batch_exports/${exportPath.split('/').at(-1) ?? ''}/intervals/${new URL(page.url()).pathname.split('/').at(-1) ?? ''}/`,
    );
    const { manifest } = body as { manifest: { body: { generation: number; files: { key: string }[] } } };
    const Key = manifest.body.files[0]?.key ?? '';
    await client.send(new PutObjectCommand({ Bucket: bucket, Key, Body: 'overwritten' }));
    const damaged = await verified(2);
    await damaged.getByText('file changed').waitFor();
    await damaged.getByText(Key).first().waitFor();
    await expectSoundPage('findings');

    await waitFor(
      async () =>
        (await (await fetch(`${monitoringUrl}/metrics`)).text()).includes(
          'exportd_differing_intervals{interval="hour",outcome="verification"} 1',
        ),
      'the metric counts the interval',
    );
  });

  it('queries, and underlines what is wrong', async () => {
    await page.getByRole('link', { name: 'Query', exact: true }).click();
    const editor = page.getByRole('textbox', { name: 'Query' });
    await editor.fill('select evnt from events');
    await button('Run').click();
    await page.getByRole('alert').getByText('evnt').first().waitFor();
    expect(own.problems).toEqual([]);
    await editor.fill('select count() as number from events');
    await button('Run').click();
    await page.getByRole('cell', { name: String(hours * rowsPerHour), exact: true }).waitFor();
    expect(own.problems).toEqual([]);
  });

  it('is usable by keyboard', async () => {
    await page.goto('/');
    await page.getByRole('link', { name: 'Events of the console' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Skip to content');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    await page.getByRole('heading', { name: 'Query' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    await page.getByRole('heading', { name: 'Exports' }).waitFor();
    expect(own.problems).toEqual([]);
  });

  it('shows a key that may only read nothing else', async () => {
    const narrow = await stack.newKey(['batch_export:read']);
    const reader = await openConsole(browser, stack.baseUrl, { key: narrow });
    try {
      await reader.page.goto(exportPath);
      await reader.page.getByRole('heading', { name: 'Events of the console' }).waitFor();
      for (const name of ['Pause', 'Unpause', 'Delete', 'Retry'])
        expect(await reader.page.getByRole('button', { name, exact: true }).count()).toBe(0);
      for (const name of ['Edit', 'Query', 'New export'])
        expect(await reader.page.getByRole('link', { name, exact: true }).count()).toBe(0);
      expect(reader.problems).toEqual([]);
    } finally {
      await reader.close();
    }
  });

  it('signs out', async () => {
    await button('Sign out').click();
    await page.getByLabel('API key').waitFor();
    await page.reload();
    await page.getByLabel('API key').waitFor();
    expect(await page.context().cookies()).toEqual([]);
  });
});
