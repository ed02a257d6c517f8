import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { createPolicies } from '../../src/decisions/create_run.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { readSettings } from '../../src/config/settings.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { completeRun } from '../http/console/complete_run.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { findViolations, launchBrowser, openConsole, type ConsolePage } from './browser.ts';
import { describePages, type NamedPage } from './describe_pages.ts';

let api: ApiHarness;
let browser: Browser;
let baseUrl: string;
let id: string;
const bucket = useTestBucket();
const event = randomUUID();

beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_S3_RETRY_BUDGET: '1s',
    EXPORTD_BACKFILL_CONCURRENCY: '10',
  });
  baseUrl = await api.listen();
  browser = await launchBrowser();
  id = await createHistory();
});
afterAll(async () => {
  await browser.close();
  await api.close();
});

/** An export of the last five minutes: exported twice, exported, failed, running, and paused since. */
async function createHistory(): Promise<string> {
  const destination = { type: 'S3', config: configOf(bucket, { prefix: `clicks/${randomUUID()}/{table}` }) };
  const created = await api.createExport({ name: 'Clicks', destination, end_at: null });
  await api.call('POST', `batch_exports/${created}/pause`);
  await api.call('POST', `batch_exports/${created}/backfill`, {
    start_at: minuteAgo(4).toISOString(),
    end_at: minuteAgo(0).toISOString(),
  });
  const { body } = await api.call('GET', `batch_exports/${created}/runs/?ordering=-data_interval_start`);
  const [newest = '', second = '', third = ''] = (body.results as { id: string }[]).map((run) => run.id);
  const inserted_at = new Date(minuteAgo(1).getTime() + 20_000).toISOString();
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     values ($1, $2, 'click', 'ada', '{}', $3, $3)`,
    [api.projectId, event, inserted_at],
  );
  const key = { inserted_at: inserted_at.replace('Z', '000Z'), id: event };
  await completeRun(api.journal, newest, { rows: 2 });
  await api.call('POST', `batch_exports/${created}/runs/${newest}/retry`);
  const { body: retried } = await api.call('GET', `batch_exports/${created}/runs/?limit=1`);
  const again = (retried.results as { id: string }[])[0]?.id ?? '';
  await completeRun(api.journal, again, { files: [{ rows: 3, first: key, last: key }] });
  await completeRun(api.journal, second, { rows: 5 });
  await endRun(api.journal, createPolicies(readSettings({ DATABASE_URL: 'unused' })), third, {
    status: 'Failed',
    latest_error: 'NoSuchBucket: The bucket "clicks" does not exist. Create it, or change bucket_name.',
  });
  await api.call('PATCH', `batch_exports/${created}`, {
    destination: { type: 'S3', config: { prefix: 'clicks/{year}/{month}' } },
  });
  await api.call('POST', 'webhooks/', { url: 'https://example.com/exportd', batch_export: created });
  return created;
}

const intervalPath = () => `/exports/${id}/intervals/${encodeURIComponent(minuteAgo(1).toISOString())}`;

/** Shows a page when it has this heading. What follows it is read by other requests. */
const heading =
  (name: string): NamedPage[2] =>
  (page) =>
    page.getByRole('heading', { name, exact: true }).waitFor();

const pages: readonly NamedPage[] = [
  ['overview', () => `/exports/${id}`, heading('Intervals')],
  ['runs', () => `/exports/${id}?tab=runs`, heading('Runs')],
  ['backfills', () => `/exports/${id}?tab=backfills`, heading('Backfills')],
  ['log', () => `/exports/${id}?tab=log`, heading('Log')],
  ['read', () => `/exports/${id}?tab=read`, heading('DuckDB')],
  ['settings', () => `/exports/${id}?tab=settings`, heading('History')],
  ['webhooks', () => `/exports/${id}?tab=webhooks`, heading('Webhooks')],
  ['interval', intervalPath, heading('Proof')],
];

describePages(() => ({ browser, baseUrl, key: api.key }), pages);

describe('with a mouse', () => {
  let opened: ConsolePage;
  beforeEach(async () => {
    opened = await openConsole(browser, baseUrl, { key: api.key });
  });
  afterEach(() => opened.close());

  it('a cell of the calendar opens its interval, and the arrow keys move between cells', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}`);
    const cell = page.locator(`a[href$="${encodeURIComponent(minuteAgo(1).toISOString())}"]`);
    await cell.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Proof' }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(minuteAgo(2).toISOString());
  });

  it('the page and the list say the same of what is wrong, and a button cures it', async () => {
    const { page } = opened;
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    const { cause, summary } = body.condition as { cause: string; summary: string };
    expect([cause, summary]).toEqual(['failed', expect.stringContaining('NoSuchBucket')]);
    await page.goto('/');
    await page.getByRole('row').getByText(summary).waitFor();
    await page.goto(`/exports/${id}`);
    await page.locator('.notice').getByText(summary).waitFor();
    expect(await page.locator('.page-subtitle .status-badge').innerText()).toBe('Failed');
    await page.getByRole('button', { name: 'Retry all failed', exact: true }).waitFor();
  });

  it('a bar on every page says what does not respond, also the server itself', async () => {
    const { page } = opened;
    const bar = page.locator('.service-bar');
    await api.database.pool.query(
      `insert into exportd.operator_faults (id, type, message, last_seen_by)
       values (gen_random_uuid(), 'SourceUnavailable', 'The source refuses connections.', 'test')`,
    );
    try {
      for (const path of ['/', `/exports/${id}?tab=runs`, '/query']) {
        await page.goto(path);
        await bar.getByText('The source refuses connections. Since').waitFor();
      }
      expect(await findViolations(page)).toEqual([]);
    } finally {
      await api.database.pool.query('delete from exportd.operator_faults');
    }
    await page.goto('/');
    await page.getByRole('heading', { name: 'Exports' }).waitFor();
    expect(await bar.count()).toBe(0);
    await page.route('**/readyz*', (route) => route.abort());
    await page.goto('/');
    await bar.getByText('The exportd server does not respond.').waitFor();
  });

  it('a run shows its steps beside its log', async () => {
    const { page, problems } = opened;
    await page.goto(`/exports/${id}?tab=runs`);
    await page.getByRole('table', { name: 'Runs' }).getByRole('link').first().click();
    await page.getByText('Run created').waitFor();
    expect(problems).toEqual([]);
  });

  it('a backfill is previewed by a dry run and started', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}?tab=backfills`);
    await page.getByRole('button', { name: 'Backfill…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Rows in the source').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.getByLabel('From (UTC)').fill('2030-01-01T00:00');
    await page.getByRole('button', { name: 'Start backfill' }).click();
    await page.locator('.field-error').waitFor();
    const line = await page.getByLabel('exportd command', { exact: true }).inputValue();
    expect(line).toContain(`npx exportd export backfill ${id} --start-at 2030-01-01T00:00:00Z`);
  });

  it('unpausing asks nothing, and deleting asks first', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}`);
    await page.getByRole('button', { name: 'Unpause', exact: true }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('button', { name: 'Unpause', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog').getByText('The files stay in the bucket').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect((await api.call('GET', `batch_exports/${id}`)).status).toBe(200);
  });

  it('an interval says which file holds an event, and verifies itself', async () => {
    const { page, problems } = opened;
    await page.goto(intervalPath());
    await page.getByLabel('Which file holds this event?').fill(event);
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('between the first and the last key of this file').waitFor();
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await page.getByText('No findings').waitFor();
    expect(problems).toEqual([]);
  });

  it('the test of the destination shows each step', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}?tab=settings`);
    await page.getByRole('button', { name: 'Test destination', exact: true }).click();
    await page.getByText('Passed').first().waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  it('a key that may only read sees no action', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const reader = await openConsole(browser, baseUrl, { key });
    for (const path of [`/exports/${id}`, `/exports/${id}?tab=backfills`, intervalPath()]) {
      await reader.page.goto(path);
      await reader.page.getByRole('heading', { level: 2 }).first().waitFor();
      for (const name of ['Pause', 'Unpause', 'Delete', 'Backfill…', 'Retry', 'Verify', 'Edit'])
        expect(await reader.page.getByRole('button', { name, exact: true }).count()).toBe(0);
    }
    await reader.close();
  });
});
