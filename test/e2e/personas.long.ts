/**
 * The ways of a data engineer, an analyst, a consumer of the bucket and an administrator through the console, with exportd's own
 * processes. That of an engineer on call is on_call.long.ts. Then every page, in both themes, on a desktop and on a phone.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import { scopes } from '../../src/http/scopes.ts';
import { createWebhookSecret } from '../../src/notifications/send_webhook.ts';
import { exportd } from '../cli/command_line.ts';
import {
  type ConsolePage,
  findViolations,
  launchBrowser,
  openConsole,
  overflowsSideways,
  takeScreenshot,
} from '../console/browser.ts';
import { type Receiver, startReceiver } from '../notifications/receiver.ts';
import { hourAgo } from '../setup/hours.ts';
import { programPath } from '../setup/programs.ts';
import { queryRoleSettings } from '../setup/query_role.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type Stack, startStack } from './stack.ts';

const [hours, rows] = [8, 800];
const screenshots = process.env.EXPORTD_SCREENSHOTS;

let stack: Stack;
let browser: Browser;
let opened: ConsolePage;
let page: Page;
let key: string;
let receiver: Receiver;
/** The path of the export that the engineer creates. */
let exportPath: string;

beforeAll(async () => {
  const secret = createWebhookSecret();
  // One after the other: what has started is known when another one throws.
  receiver = await startReceiver(secret);
  browser = await launchBrowser();
  // The engineer's view, which does not exist yet.
  stack = await startStack('personas', { EXPORTD_EVENTS_RELATION: 'public.shop_events' });
  key = await stack.newKey(scopes);
  await stack.pool.query(
    `create table orders_log (log_no bigint generated always as identity primary key, what text, customer_email text,
       payload jsonb, happened timestamptz, recorded timestamptz not null default clock_timestamp())`,
  );
  await stack.pool.query(
    `insert into orders_log (what, customer_email, payload, happened, recorded)
     select (array['ordered', 'signed up'])[n % 2 + 1], 'customer ' || n % 40, jsonb_build_object('price', n), moment, moment
     from generate_series(0, $2 - 1) n
     cross join lateral (select $1::timestamptz + n * interval '1 hour' * $3 / $2 as moment) m`,
    [hourAgo(hours), rows, hours],
  );
  opened = await openConsole(browser, stack.baseUrl, { key });
  ({ page } = opened);
});
afterAll(async () => {
  await browser.close();
  await stack.stop();
  await receiver.close();
});

const button = (name: string | RegExp, within: Page | Locator = page): Locator =>
  within.getByRole('button', { name, exact: typeof name === 'string' });
const dialog = (): Locator => page.getByRole('dialog');
const fill = (attr: string, value: string): Promise<void> =>
  page.locator(`[data-attr="${attr}"]`).fill(value);
const copied = (): Promise<string> => page.evaluate<string>('navigator.clipboard.readText()');

/** Expects that the page breaks no rule of accessibility and that nothing failed in it. */
async function expectSoundPage(what: string): Promise<void> {
  await page.locator('[aria-busy=true], .loading').first().waitFor({ state: 'detached' });
  if (screenshots) await takeScreenshot(page, screenshots, `persona-${what.replaceAll(' ', '-')}`);
  const found = { what, violations: await findViolations(page), problems: opened.problems };
  expect(found).toEqual({ what, violations: [], problems: [] });
}

describe('a data engineer', () => {
  it('is told by every page that the view is missing, and maps a table to it', async () => {
    await page.goto('/query');
    await page
      .getByText(/public.*shop_events/)
      .first()
      .waitFor();
    await expectSoundPage('query without a view');
    await page.goto('/exports/new');
    await page.getByText('It does not exist. Create it', { exact: false }).waitFor();
    await expectSoundPage('new export without a view');
    await page.getByRole('link', { name: 'Map a table to events' }).click();
    await page.getByLabel('Table', { exact: true }).selectOption('public.orders_log');
    await page.getByLabel('Column for event', { exact: true }).selectOption('what');
    await page.getByLabel('Column for distinct_id').selectOption('customer_email');
    await page.getByRole('table', { name: 'First rows' }).getByText('ordered').first().waitFor();
    await expectSoundPage('map a table');
    await button('Copy script').click();
    for (const statement of (await copied()).split(/(?<=;)\n/)) await stack.pool.query(statement);
    await page.getByRole('link', { name: 'a new export' }).click();
    await page.getByText('Exports can read').waitFor();
  });

  it('creates an export, whose form keeps what was typed', async () => {
    const { bucket } = stack;
    await fill('name', 'Orders');
    await page.getByRole('link', { name: 'Query' }).click();
    await page.goBack();
    await page.getByText('What you typed is here again, except secrets.').waitFor();
    await fill('destination__config__bucket_name', bucket.bucket);
    await fill('destination__config__region', 'us-east-1');
    await fill('destination__config__prefix', 'orders/{year}/{month}');
    await fill('destination__config__endpoint_url', bucket.endpoint);
    await fill('destination__config__aws_access_key_id', bucket.accessKeyId);
    await fill('destination__config__aws_secret_access_key', bucket.secretAccessKey);
    await page.locator('[data-attr="destination__config__file_format"]').selectOption('Parquet');
    await page.locator('[data-attr="destination__config__compression"]').selectOption('zstd');
    await page.locator('.form-section > summary', { hasText: 'More' }).click();
    await page.locator('[data-attr="destination__config__table_format"]').selectOption('Delta');
    await page.getByRole('table', { name: 'First rows' }).waitFor();
    await button('Estimate').click();
    await page.getByText('Bytes, about').waitFor();
    await button('Test destination').click();
    await page.locator('.test-steps').waitFor();
    await expectSoundPage('new export');
    await button('Create export').click();
    await page.getByRole('heading', { name: 'Orders', level: 1 }).waitFor();
    exportPath = new URL(page.url()).pathname;
    await page.getByText(/^Next run/).waitFor();
    await expectSoundPage('export without runs');
  });

  it('exports all since the first row, and sees what is exported', async () => {
    await page.goto(`${exportPath}?tab=backfills`);
    await button('Backfill…').click();
    await button(/^Since the first row/, dialog()).click();
    await button('Dry run', dialog()).click();
    await dialog().getByText(`${hours} intervals`).waitFor();
    await expectSoundPage('dry run');
    await button('Start backfill', dialog()).click();
    await page.getByText(`${hours} of ${hours} intervals, ${rows} rows`).waitFor();
    await page.goto(exportPath);
    await page.getByRole('group', { name: 'Exported time, UTC' }).waitFor();
    await expectSoundPage('export');
    await page.goto(`${exportPath}?tab=runs`);
    await page.getByLabel('By', { exact: true }).selectOption('Schedule');
    await page
      .getByText('No runs')
      .or(page.getByText(/^\d+ runs?$/))
      .first()
      .waitFor();
    await page.getByLabel('By', { exact: true }).selectOption('Backfills and retries');
    await page.getByText(`${hours} runs`).waitFor();
    await expectSoundPage('runs');
  });

  it('changes the prefix after having read what that does', async () => {
    await page.goto(`${exportPath}/edit`);
    await fill('destination__config__prefix', 'orders');
    await button('Save').click();
    await page.locator('.test-steps').waitFor();
    await dialog().getByText('their readers get nothing new there', { exact: false }).waitFor();
    await expectSoundPage('consequences');
    await button('Back', dialog()).click();
  });
});

describe('an analyst', () => {
  it('asks in words, sorts, downloads and finds the query again', async () => {
    // The role of queries reads what its set-up has granted: the view is new.
    const relation = { EXPORTD_EVENTS_RELATION: 'public.shop_events' };
    const done = await exportd(
      { DATABASE_URL: stack.databaseUrl, ...queryRoleSettings(stack.databaseUrl), ...relation },
      'query',
      'setup',
    );
    expect([done.code, done.stderr]).toEqual([0, '']);
    await page.goto('/query');
    await page.getByLabel('Describe it in words').fill('number of events per day last week');
    await page.getByLabel('Describe it in words').press('Enter');
    const editor = page.getByLabel('Query', { exact: true });
    await waitFor(async () => (await editor.inputValue()).includes('count('), 'a draft of the query');
    await editor.press('Control+Enter');
    await page
      .getByRole('status')
      .filter({ hasText: /rows? in/ })
      .waitFor();
    await expectSoundPage('drafted query');
    const query = 'select event, count() as orders from events group by event order by event';
    await editor.fill(query);
    await editor.press('Control+Enter');
    await page.getByRole('cell', { name: 'ordered' }).waitFor();
    await button('orders').click();
    const [file] = await Promise.all([page.waitForEvent('download'), button('Download CSV').click()]);
    expect(readFileSync(await file.path(), 'utf8').split('\r\n')).toContain(`ordered,${rows / 2}`);
    await page.reload();
    await button(query).click();
    expect(await editor.inputValue()).toBe(query);
    await expectSoundPage('query');
  });
});

describe('a consumer of the bucket', () => {
  it('copies a program that reads every row once', async () => {
    await page.goto(`${exportPath}?tab=read`);
    await button('Copy program for deltalake').click();
    await expectSoundPage('how to read');
    const { accessKeyId, secretAccessKey } = stack.bucket;
    const { stdout } = await promisify(execFile)(await programPath('table-readers'), ['-c', await copied()], {
      env: { ...process.env, AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    });
    expect(Number(stdout.trim())).toBe(rows);
  });

  it('verifies an interval', async () => {
    const start = hourAgo(2).toISOString();
    await page.goto(`${exportPath}/intervals/${encodeURIComponent(start)}`);
    await button('Verify every value').click();
    await page.getByText('no row is missing, duplicate or unexpected', { exact: false }).first().waitFor();
    await expectSoundPage('interval');
  });
});

describe('an administrator', () => {
  it('creates, rotates and revokes a key, and sees who did what', async () => {
    await page.goto('/keys');
    await button('New key…').click();
    await dialog().getByLabel('Name').fill('Nightly job');
    await dialog()
      .getByRole('radio', { name: /^Custom/ })
      .check();
    await dialog().getByLabel('batch_export:read').check();
    await button('Create key').click();
    const created = await dialog().getByLabel('API key', { exact: true }).inputValue();
    await button('Done', dialog()).click();
    const statusWith = async () =>
      (await fetch(`${stack.baseUrl}/api/projects/`, { headers: { authorization: `Bearer ${created}` } }))
        .status;
    expect(await statusWith()).toBe(200);
    await button('Rotate Nightly job').click();
    await button('Rotate', dialog()).click();
    await button('Done', dialog()).click();
    await expectSoundPage('keys');
    const row = page.getByRole('row').filter({ hasText: created.slice(0, 8) });
    await button('Revoke', row).click();
    await button('Revoke', dialog()).click();
    await waitFor(async () => (await statusWith()) === 401, 'the key to end');
    await page.goto('/audit');
    for (const action of ['key.create', 'key.rotate', 'key.revoke', 'source.map'])
      await page.getByRole('cell', { name: action }).first().waitFor();
    await expectSoundPage('audit');
  });

  it('adds a webhook for all exports, tests it and replaces its secret', async () => {
    await page.goto('/webhooks');
    await button('Add webhook…').click();
    await dialog().getByRole('textbox', { name: /^URL/ }).fill(receiver.url);
    await button('Add webhook', dialog()).click();
    await button('Done', dialog()).click();
    await button('Replace secret…').click();
    await button('Replace secret', dialog()).click();
    await dialog().getByLabel('signing secret', { exact: true }).waitFor();
    await button('Done', dialog()).click();
    await button('Test').click();
    await page.getByText(/^Last attempt/).waitFor();
    await button('Deliveries').click();
    await expectSoundPage('webhooks');
  });

  it('sees what the key may do, and signs out', async () => {
    await button('Account').click();
    await dialog().getByText('tess@example.com').waitFor();
    await expectSoundPage('account');
    await button('Close', dialog()).click();
  });
});

describe('every page', () => {
  it.each([
    ['light', 1_440],
    ['dark', 1_440],
    ['light', 390],
    ['dark', 390],
  ] as const)('is accessible and fits in %s at %d pixels', async (colorScheme, width) => {
    const device = width < 600 ? 'phone' : 'desktop';
    const own = await openConsole(browser, stack.baseUrl, { key, colorScheme, device });
    try {
      const shown = own.page;
      await shown.setViewportSize({ width, height: 900 });
      const interval = `${exportPath}/intervals/${encodeURIComponent(hourAgo(2).toISOString())}`;
      const tabs = ['runs', 'backfills', 'log', 'read', 'table', 'settings', 'webhooks'];
      const paths = [
        '/',
        '/exports/new',
        '/query',
        '/keys',
        '/audit',
        '/webhooks',
        '/source?table=public.orders_log',
        '/nothing',
        exportPath,
        `${exportPath}/edit`,
        interval,
        ...tabs.map((tab) => `${exportPath}?tab=${tab}`),
      ];
      const unsound: unknown[] = [];
      for (const path of paths) {
        await shown.goto(path);
        await shown.locator('h1').waitFor();
        await shown.locator('[aria-busy=true], .loading').first().waitFor({ state: 'detached' });
        const name = path.replace(exportPath, 'export').replaceAll(/[^a-z]+/gi, '-');
        if (screenshots) await takeScreenshot(shown, screenshots, `page${name}-${colorScheme}-${width}`);
        const violations = await findViolations(shown);
        const overflows = await overflowsSideways(shown);
        if (violations.length > 0 || overflows) unsound.push({ path, violations, overflows });
      }
      expect({ unsound, problems: own.problems }).toEqual({ unsound: [], problems: [] });
    } finally {
      await own.close();
    }
  });
});
