import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { recordIntervalCheck } from '../../src/projections/interval_checks.ts';
import { inWords } from '../../src/console/pages/edit/form_fields.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { createLaggingExport } from '../http/lagging_export.ts';
import { completeRun } from '../http/console/complete_run.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { findOverlaps, findViolations, launchBrowser, openConsole, type ConsolePage } from './browser.ts';
import { describePages, type NamedPage } from './describe_pages.ts';

let api: ApiHarness;
let browser: Browser;
let baseUrl: string;
let id: string;
/** An export whose backfills have left three minutes between them. */
let holes: string;
const bucket = useTestBucket();
const event = randomUUID();

beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_S3_RETRY_BUDGET: '1s',
    EXPORTD_BACKFILL_CONCURRENCY: '10',
    // What is not done at once is polled.
    EXPORTD_JOB_WAIT_TIMEOUT: '0s',
  });
  baseUrl = await api.listen();
  browser = await launchBrowser();
  id = await createHistory();
  holes = await createHoles();
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
  await endRun(api.journal, quickPolicies(), third, {
    status: 'Failed',
    latest_error: 'NoSuchBucket: The bucket "clicks" does not exist. Create it, or change bucket_name.',
  });
  await api.call('PATCH', `batch_exports/${created}`, {
    destination: { type: 'S3', config: { prefix: 'clicks/{year}/{month}' } },
  });
  await api.call('POST', 'webhooks/', { url: 'https://example.com/exportd', batch_export: created });
  return created;
}

async function createHoles(): Promise<string> {
  const created = await api.createExport({ name: 'Holes', end_at: null });
  for (const minute of [9, 5])
    await completeRun(api.journal, await startBackfill(created, minute), { rows: 4 });
  return created;
}

/** Backfills a minute. @returns its run */
async function startBackfill(exportId: string, minute: number): Promise<string> {
  const [start, end] = [minuteAgo(minute).toISOString(), minuteAgo(minute - 1).toISOString()];
  await api.call('POST', `batch_exports/${exportId}/backfill`, { start_at: start, end_at: end });
  const { body } = await api.call('GET', `batch_exports/${exportId}/runs/?start=${start}&end=${end}`);
  return (body.results as { id: string }[])[0]?.id ?? '';
}

/** An export whose destination lacks its bucket, which exportd has paused after three failures. */
async function createPaused(): Promise<string> {
  const created = await createLaggingExport(api, minuteAgo(3), {
    name: 'Paused by failures',
    end_at: minuteAgo(0).toISOString(),
  });
  await api.advanceSchedule(created);
  const { body } = await api.call('GET', `batch_exports/${created}/runs/`);
  for (const run of body.results as { id: string }[])
    await endRun(api.journal, quickPolicies(), run.id, {
      status: 'Failed',
      latest_error: 'NoSuchBucket: The bucket does not exist.',
    });
  await api.advanceSchedule(created);
  return created;
}

const intervalPath = () => `/exports/${id}/intervals/${encodeURIComponent(minuteAgo(1).toISOString())}`;

/** Shows a page when it has this heading. What follows it is read by other requests. */
const heading =
  (name: string): NamedPage[2] =>
  (page) =>
    page.getByRole('heading', { name, exact: true }).waitFor();

const pages: readonly NamedPage[] = [
  ['exports', () => '/', (page) => page.getByRole('row').getByText('Clicks').first().waitFor()],
  ['overview', () => `/exports/${id}`, heading('Intervals')],
  ['holes', () => `/exports/${holes}`, (page) => page.locator('button.calendar-cell').first().waitFor()],
  ['no export', () => `/exports/${randomUUID()}`, heading('Not found')],
  ['runs', () => `/exports/${id}?tab=runs`, heading('Runs')],
  ['backfills', () => `/exports/${id}?tab=backfills`, heading('Backfills')],
  ['log', () => `/exports/${id}?tab=log`, heading('Log')],
  ['read', () => `/exports/${id}?tab=read`, heading('DuckDB')],
  ['settings', () => `/exports/${id}?tab=settings`, heading('Settings')],
  ['webhooks', () => `/exports/${id}?tab=webhooks`, heading('Webhooks')],
  ['interval', intervalPath, heading('Comparison with the source')],
];

describePages(() => ({ browser, baseUrl, key: api.key }), pages);

describe('with a mouse', () => {
  let opened: ConsolePage;
  beforeAll(async () => {
    opened = await openConsole(browser, baseUrl, { key: api.key });
  });
  afterEach(() => opened.reset());
  afterAll(() => opened.close());

  it('the theme is that of the system until one is chosen, which stays', async () => {
    const { page } = opened;
    const shown = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    const [light, dark] = ['rgb(246, 247, 249)', 'rgb(11, 12, 16)'];
    await page.goto('/');
    const theme = page.getByRole('button', { name: /^Theme: / });
    await theme.waitFor();
    expect(await shown()).toBe(light);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await shown()).toBe(dark);
    await theme.click();
    expect([await theme.innerText(), await shown()]).toEqual(['Theme: light', light]);
    await theme.click();
    await page.emulateMedia({ colorScheme: 'light' });
    expect([await theme.innerText(), await shown()]).toEqual(['Theme: dark', dark]);
    await page.reload();
    await theme.waitFor();
    expect([await theme.innerText(), await shown()]).toEqual(['Theme: dark', dark]);
    await theme.click();
    expect([await theme.innerText(), await shown()]).toEqual(['Theme: system', light]);
  });

  it('a cell of the calendar opens its interval, and the arrow keys move between cells', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}`);
    const cell = page.locator(`a[href$="${encodeURIComponent(minuteAgo(1).toISOString())}"]`);
    await cell.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Comparison with the source' }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(minuteAgo(2).toISOString());
  });

  it('asks before it deletes, with the focus on what changes nothing', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}`);
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog', { name: 'Delete Clicks?' }).waitFor();
    expect(await page.locator(':focus').innerText()).toBe('Close');
  });

  it('the page and the list say the same of what is wrong, and a button cures it', async () => {
    const { page } = opened;
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    const { cause, summary } = body.condition as { cause: string; summary: string };
    expect([cause, summary]).toEqual(['failed', expect.stringContaining('NoSuchBucket')]);
    // Its code stands behind it.
    const shown = inWords(summary).replace('NoSuchBucket: ', '');
    await page.goto('/');
    await page.getByRole('row').getByText(shown).waitFor();
    await page.goto(`/exports/${id}`);
    await page.locator('.notice').getByText(shown).waitFor();
    expect(await page.locator('.page-subtitle .status-badge').innerText()).toBe('Failed');
    await page.getByRole('button', { name: 'Retry all failed', exact: true }).waitFor();
  });

  it('an export that exportd has paused says why, and one button fixes it and others of its bucket', async () => {
    const { page, problems } = opened;
    const [paused, other] = [await createPaused(), await createPaused()];
    await page.goto(`/exports/${paused}`);
    const notice = page.locator('.notice');
    await notice
      .getByText(
        /^exportd paused the export at .* after 3 failed runs in a row: The bucket .*\(NoSuchBucket\)$/,
      )
      .waitFor();
    await notice.getByRole('link', { name: 'Edit' }).waitFor();
    // Unpause alone would let it fail again.
    expect(await page.locator('main .button-primary').allInnerTexts()).toEqual([
      expect.stringMatching(/^Unpause, backfill and retry/),
      expect.anything(),
    ]);
    await notice.getByRole('button', { name: 'Test destination' }).waitFor();
    await notice.getByRole('link', { name: 'Paused by failures' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await notice.getByRole('button', { name: 'Unpause, backfill and retry 3', exact: true }).waitFor();
    await notice.getByRole('button', { name: 'Retry all 2', exact: true }).click();
    await page.getByText('Requested.').waitFor();
    for (const cured of [paused, other])
      expect((await api.call('GET', `batch_exports/${cured}/`)).body).toMatchObject({
        paused: false,
        condition: { cause: 'ok' },
      });
    expect(problems).toEqual([]);
    for (const cured of [paused, other]) await api.call('DELETE', `batch_exports/${cured}/`);
  });

  it('an export that waits for capacity says so in the list and on its page, until its runs have ended', async () => {
    const { page, problems } = opened;
    const created = await createLaggingExport(api, minuteAgo(3), {
      name: 'Waits for a slot',
      end_at: minuteAgo(0).toISOString(),
    });
    await api.advanceSchedule(created);
    const { body } = await api.call('GET', `batch_exports/${created}/runs/`);
    const runs = (body.results as { id: string }[]).map((run) => run.id);
    for (const run of runs)
      await createRunRecorder(api.journal).recordCount(run, {
        records_total_count: 3,
        fingerprint: fingerprintOf(3, {
          interval: { start: minuteAgo(1).toISOString(), end: minuteAgo(0).toISOString() },
        }),
        settled: true,
        split_keys: [],
      });
    const { pool } = api.database;
    await pool.query(
      `insert into exportd.worker_heartbeats (worker, seen_at, export_slots, slots_taken_at)
       select 'busy', later, 4, later from (select clock_timestamp() + interval '1 hour' as later) reported`,
    );
    await page.goto('/');
    const row = page.getByRole('row').filter({ hasText: 'Waits for a slot' });
    await row.getByText('Behind: capacity', { exact: true }).waitFor();
    await row.getByText(/^Behind for lack of capacity: 3 intervals wait for a free slot, and/).waitFor();
    await page.goto(`/exports/${created}`);
    await page
      .locator('.notice')
      .getByText(
        /all 4 of 1 worker are in use\..*Start one more worker.*The operator of exportd has to act\.$/,
      )
      .waitFor();
    expect(await page.locator('.page-subtitle .status-badge').innerText()).toBe('Behind: capacity');
    expect(await findViolations(page)).toEqual([]);
    for (const run of runs) await completeRun(api.journal, run, { rows: 3 });
    await page.reload();
    await page.locator('.page-subtitle').getByText('Active', { exact: true }).waitFor();
    expect(problems).toEqual([]);
    await pool.query('delete from exportd.worker_heartbeats');
    await api.call('DELETE', `batch_exports/${created}/`);
  });

  it('many exports whose bucket does not respond are one line above the list, until it responds', async () => {
    const config = { ...configOf(bucket), bucket_name: 'lost', endpoint_url: 'http://127.0.0.1:1' };
    const names = Array.from({ length: 12 }, (_, index) => `Lost ${index + 1}`);
    const lost: string[] = [];
    for (const name of names) {
      const created = await api.createExport({
        name,
        destination: { type: 'S3', config: { ...config, prefix: name } },
      });
      await api.call('POST', `batch_exports/${created}/backfill`, {
        start_at: minuteAgo(3).toISOString(),
        end_at: minuteAgo(1).toISOString(),
      });
      lost.push(created);
    }
    const { pool } = api.database;
    const lose = () =>
      pool.query(
        `insert into exportd.destination_circuits (destination, opened_at, error, next_probe_at)
         select circuit, now(), 'The S3 server refused the connection.', now()
         from exportd.destination_configs where batch_export_id = any($1) group by circuit`,
        [lost],
      );
    const find = () => pool.query('delete from exportd.destination_circuits');
    await lose();
    for (const device of ['desktop', 'phone'] as const) {
      const shown = await openConsole(browser, baseUrl, { key: api.key, device });
      try {
        const { page, problems } = shown;
        await page.goto('/');
        const line = page.getByRole('status').filter({ hasText: 'does not respond' });
        await line
          .getByText(/^The bucket lost at 127\.0\.0\.1:1 .* 12 exports, 24 intervals wait\.$/)
          .waitFor();
        expect(await line.locator('p').count()).toBe(1);
        const rows = page.getByRole('row').filter({ hasText: /^Lost \d/ });
        expect(await rows.count()).toBe(12);
        expect(await rows.getByText('Bucket unavailable').count()).toBe(12);
        // It is said once.
        expect(await page.getByText('refused the connection').count()).toBe(1);
        expect(await findViolations(page)).toEqual([]);
        expect(await findOverlaps(page)).toEqual([]);
        expect(problems).toEqual([]);
        if (device === 'phone') continue;
        await page.getByRole('link', { name: 'Lost 7', exact: true }).click();
        const notice = page.locator('.notice');
        await notice.getByText('The bucket lost at 127.0.0.1:1 does not respond').waitFor();
        await notice.getByRole('link', { name: 'Lost 12', exact: true }).waitFor();
        expect(await notice.getByText(/since/i).count()).toBe(1);
        await page.goBack();
        await line.waitFor();
        await find();
        await line.waitFor({ state: 'detached' });
        await lose();
      } finally {
        await shown.close();
      }
    }
    await find();
    for (const created of lost) await api.call('DELETE', `batch_exports/${created}/`);
  });

  it('an export without intervals says in one sentence what comes, and leads to its backfills', async () => {
    const { page } = opened;
    const created = await api.createExport({ name: 'New', interval: 'month', end_at: null });
    await page.goto(`/exports/${created}`);
    const next = page.getByText(
      'The first one is exported when it has ended. For the past, start a backfill.',
    );
    await next.waitFor();
    expect(await next.count()).toBe(1);
    await next.getByRole('link', { name: 'start a backfill' }).click();
    await page.getByRole('heading', { name: 'Backfills' }).waitFor();
    await api.call('DELETE', `batch_exports/${created}/`);
  });

  it('an export says when it runs next, and exports its newest interval now', async () => {
    const { page } = opened;
    await page.goto(`/exports/${holes}`);
    await page.getByText(/^Next run/).waitFor();
    const query = new URL(
      (await page.getByRole('link', { name: 'Workflows in Temporal' }).getAttribute('href')) ?? '',
    ).searchParams.get('query');
    expect(query).toBe(`ExportdBatchExport="${holes}"`);
    const requested = page.waitForResponse((response) => response.request().method() === 'POST');
    await page.getByRole('button', { name: 'Run now', exact: true }).click();
    await page.getByText(/^A run of .* was requested\.$/).waitFor();
    const { start_at, end_at } = (await (await requested).json()) as { start_at: string; end_at: string };
    // The schedule may have created it: a minute ends while the tests run.
    const { body } = await api.call('GET', `batch_exports/${holes}/runs/?start=${start_at}&end=${end_at}`);
    expect(body.results).toEqual([expect.objectContaining({ data_interval_end: end_at })]);
  });

  it('what nothing has exported is shown as such, and one click backfills it', async () => {
    const { page, problems } = opened;
    await page.goto(`/exports/${holes}`);
    const cells = page.locator('button.calendar-cell');
    await cells.first().waitFor();
    const dialog = page.getByRole('dialog');
    const from = dialog.getByLabel('From (UTC)');
    expect(await cells.first().getAttribute('title')).toContain('not exported');
    await cells.first().click();
    expect(await from.inputValue()).toBe(minuteAgo(8).toISOString().slice(0, 16));
    expect(await dialog.getByLabel('To (UTC)').inputValue()).toBe(minuteAgo(5).toISOString().slice(0, 16));
    await page.keyboard.press('Escape');

    const parts = page.getByRole('group', { name: 'Exported time, UTC' }).getByRole('button');
    await parts.first().focus();
    await page.keyboard.press('Shift+ArrowRight');
    await page.keyboard.press('Enter');
    expect(await from.inputValue()).toBe(minuteAgo(9).toISOString().slice(0, 16));
    await dialog.getByRole('button', { name: /^Only what is missing/ }).click();
    await dialog.getByRole('button', { name: 'Dry run' }).click();
    await dialog.getByText('Takes about').waitFor();
    await dialog.getByRole('button', { name: 'Start backfill' }).click();
    await page.getByText(/have started\.$|has started\.$/).waitFor();
    await cells.first().waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  it('a range of the coverage is dragged, and begins with the first row of the source', async () => {
    const { page } = opened;
    await page.goto(`/exports/${holes}`);
    const bar = page.getByRole('group', { name: 'Exported time, UTC' });
    const first = minuteAgo(1).toISOString().slice(0, 10);
    await page.locator('.coverage-ends').getByText(first).first().waitFor();
    await bar.scrollIntoViewIfNeeded();
    const box = await bar.boundingBox();
    if (!box) throw new Error('The bar is not shown.');
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.25, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, y, { steps: 4 });
    await page.locator('.coverage-selection').waitFor();
    await page.mouse.up();
    const dialog = page.getByRole('dialog');
    const times = await Promise.all(
      ['From (UTC)', 'To (UTC)'].map(async (label) => dialog.getByLabel(label).inputValue()),
    );
    expect(Date.parse(`${times[0]}Z`)).toBeLessThan(Date.parse(`${times[1]}Z`));
    expect(Date.parse(`${times[0]}Z`)).toBeGreaterThan(minuteAgo(30).getTime());
  });

  it('runs are searched by the days of their intervals', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}?tab=runs`);
    await page.getByText(/^\d+ runs$/).waitFor();
    await page.getByLabel('From', { exact: true }).fill('2030-01-01');
    await page.getByText('0 runs').or(page.getByText('No runs')).first().waitFor();
    expect(new URL(page.url()).searchParams.get('from')).toBe('2030-01-01');
    await page.getByLabel('From', { exact: true }).fill(minuteAgo(10).toISOString().slice(0, 10));
    await page.getByText(/^\d+ runs$/).waitFor();
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

  it('plots are drawn also where the system of the browser has no language', async () => {
    const window = await openConsole(browser, baseUrl, { key: api.key });
    const { page, problems } = window;
    await page.addInitScript(
      "Object.defineProperty(navigator, 'language', { value: 'en-US@posix', configurable: true })",
    );
    await page.goto(`/exports/${id}`);
    await page.locator('.plot canvas').first().waitFor();
    expect(problems).toEqual([]);
    await window.close();
  });

  it('the log has a line for each run, and codes of errors stand behind their sentences', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}?tab=log`);
    const failed = page.locator('.log-run').filter({ hasText: 'does not exist' });
    await failed.first().waitFor();
    expect(await failed.first().innerText()).toMatch(
      /ended Failed: The bucket "clicks" does not .*\(NoSuchBucket\)/,
    );
    const links = await page
      .locator('.log-run > a')
      .evaluateAll((elements) => elements.map((element) => element.getAttribute('href')));
    expect(links.length).toBeGreaterThan(2);
    expect(new Set(links).size).toBe(links.length);
    expect(await findViolations(page)).toEqual([]);
  });

  it('words explain themselves on hover, with the keyboard and by touch', async () => {
    const { page } = opened;
    await page.goto(intervalPath());
    const word = page.getByRole('button', { name: 'Generation' }).first();
    const note = page.getByRole('tooltip').filter({ hasText: 'files of the next generation' });
    await word.hover();
    await note.waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.mouse.move(0, 0);
    await note.waitFor({ state: 'hidden' });
    await word.focus();
    await note.waitFor();
    await page.keyboard.press('Escape');
    await note.waitFor({ state: 'hidden' });
    // What a tap sends.
    await word.dispatchEvent('click');
    await note.waitFor();
  });

  it('pages of an export show times in its zone, other pages in that of the project', async () => {
    const { page } = opened;
    const daily = await api.createExport({
      interval: 'day',
      timezone: 'America/New_York',
      end_at: null,
      destination: { type: 'S3', config: configOf(bucket, { prefix: `daily/${randomUUID()}` }) },
    });
    await page.goto(`/exports/${daily}`);
    await page.getByText('Times in America/New_York').waitFor();
    expect(await page.locator('.facts time').last().getAttribute('title')).toMatch(/ America\/New_York$/);
    await page.getByRole('link', { name: 'Exports', exact: true }).first().click();
    await page.getByText('Times in UTC').waitFor();
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
    expect(line).toContain(`npx exportd export backfill ${id} --start-at 2030-01-01T00:00:00.000Z`);
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
    await page.locator('.destination-test').getByRole('button', { name: 'Test destination' }).click();
    await page.getByText('Passed').first().waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  it('the check of a table that takes longer than its request is waited for', async () => {
    const { page, problems } = opened;
    const config = configOf(bucket, { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' });
    const table = await api.createExport({ name: 'Table', destination: { type: 'S3', config } });
    await page.goto(`/exports/${table}?tab=table`);
    await page.getByText('There is no table at').waitFor();
    api.mode = 'deferred';
    const accepted = page.waitForResponse((response) => response.url().endsWith('/table/check/'));
    await page.getByRole('button', { name: 'Check', exact: true }).click();
    const response = await accepted;
    const job = (await response.json()) as { id: string };
    await api.doJob(job.id);
    await page.getByText('Checked.').waitFor();
    await page.getByText('No findings').waitFor();
    api.mode = 'decide';
    expect([response.status(), problems]).toEqual([202, []]);
    await api.call('DELETE', `batch_exports/${table}/`);
  });

  it('the versions of a table are pages of ten', async () => {
    const { page, problems } = opened;
    const root = randomUUID();
    const config = configOf(bucket, {
      prefix: `${root}/{year}`,
      file_format: 'Parquet',
      compression: 'zstd',
      table_format: 'delta',
    });
    const table = await api.createExport({ name: 'Versions', destination: { type: 'S3', config } });
    const log = createDeltaReader(bucket, root);
    const schema = { fields: [{ name: 'uuid', type: 'string', nullable: true, metadata: {} }] };
    const metaData = {
      id: table,
      format: { provider: 'parquet', options: {} },
      schemaString: JSON.stringify(schema),
      partitionColumns: [],
      configuration: {},
    };
    await log.commit({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData });
    for (let version = 1; version <= 12; version += 1) await log.commit({ metaData });
    await page.goto(`/exports/${table}?tab=table`);
    const rows = page.getByRole('table', { name: 'Versions' }).locator('tbody tr');
    const shows = (version: number) => rows.first().getByText(String(version), { exact: true }).waitFor();
    await shows(12);
    expect(await rows.count()).toBe(10);
    await page.getByRole('button', { name: 'Older' }).click();
    await shows(2);
    expect(await rows.count()).toBe(3);
    expect(await page.getByRole('button', { name: 'Older' }).isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'Newer' }).click();
    await shows(12);
    expect(problems).toEqual([]);
    await api.call('DELETE', `batch_exports/${table}/`);
  });

  it('a decision that takes longer than its request is waited for', async () => {
    const { page, problems } = opened;
    await recordIntervalCheck(api.database.pool, {
      batch_export_id: id,
      start: minuteAgo(1).toISOString(),
      end: minuteAgo(0).toISOString(),
      checked_by: 'verification',
      checked_at: new Date().toISOString(),
      difference: '3 unexpected',
      findings: {},
    });
    await page.goto(intervalPath());
    await page.getByRole('button', { name: 'Keep or remove rows…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('ticket 9');
    api.mode = 'deferred';
    const accepted = page.waitForResponse(
      (response) => response.request().method() === 'POST' && response.url().endsWith('/difference/'),
    );
    await dialog.getByRole('button', { name: 'Keep the exported rows' }).click();
    const response = await accepted;
    const job = (await response.json()) as { id: string };
    await api.doJob(job.id);
    await page.getByText('3 rows that the source lacks: kept by').waitFor();
    api.mode = 'decide';
    expect([response.status(), problems]).toEqual([202, []]);
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

describe('while a page is read again', () => {
  let opened: ConsolePage;
  let shown: string;
  beforeAll(async () => {
    opened = await openConsole(browser, baseUrl, { key: api.key });
    shown = await createHoles();
  });
  afterEach(() => opened.reset());
  afterAll(() => opened.close());

  /** Reads again what a page polls. */
  const readAgain = (page: Page) => page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');

  /** From now on, the page reads the export of these tests as `change` makes it. */
  const serveExport = async (page: Page, change: Readonly<Record<string, unknown>>) => {
    await page.route(`**/batch_exports/${shown}/`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), ...change } });
    });
    await readAgain(page);
  };

  const failing = (summary: string) => ({
    condition: { cause: 'failed', severity: 'error', summary, since: null, actions: [] },
  });
  const well = { condition: { cause: 'ok', severity: 'ok', summary: '', since: null, actions: [] } };

  it('the focus is at what opened a dialog as soon as it is closed, and stays where it goes then', async () => {
    const { page } = opened;
    await page.goto(`/exports/${shown}`);
    const cell = page.locator('button.calendar-cell').first();
    await cell.click();
    await page.getByRole('dialog').waitFor();
    // A busy browser: no frame is drawn, and no timer runs out.
    await page.evaluate('window.requestAnimationFrame = () => 0; window.setTimeout = () => 0');
    await page.keyboard.press('Escape');
    expect(await page.evaluate('document.activeElement.className')).toContain('calendar-cell');
  });

  it('parts of the bar that were selected by keyboard stay selected when an older first row is known', async () => {
    const { page } = opened;
    const known = Promise.withResolvers<undefined>();
    const firstRow = { at: minuteAgo(20).toISOString(), before: null, rows_before: null, detail: null };
    await page.route('**/first_row/', async (route) => {
      await known.promise;
      await route.fulfill({ json: firstRow });
    });
    await page.goto(`/exports/${shown}`);
    const parts = page.getByRole('group', { name: 'Exported time, UTC' }).getByRole('button');
    await parts.first().focus();
    await page.keyboard.press('Shift+ArrowRight');
    known.resolve(undefined);
    const first = minuteAgo(20).toISOString().slice(0, 16).replace('T', ' ');
    await page.locator('.coverage-ends').getByText(first).waitFor();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('From (UTC)').inputValue()).toBe(minuteAgo(9).toISOString().slice(0, 16));
    expect(await dialog.getByLabel('To (UTC)').inputValue()).toBe(minuteAgo(5).toISOString().slice(0, 16));
  });

  it('a press on a button counts although what is wrong is said in other words meanwhile', async () => {
    const { page } = opened;
    await serveExport(page, failing('One run failed.'));
    await page.goto(`/exports/${shown}`);
    await page.locator('.notice').getByRole('link', { name: 'Edit' }).hover();
    await page.mouse.down();
    await serveExport(page, { ...failing('Two runs failed.'), name: 'Said anew' });
    await page.getByRole('heading', { name: 'Said anew' }).waitFor();
    await page.mouse.up();
    await page.getByLabel('Prefix').waitFor();
    expect(new URL(page.url()).pathname).toBe(`/exports/${shown}/edit`);
  });

  it('the test of a destination stays open when nothing is wrong any more', async () => {
    const { page } = opened;
    await serveExport(page, failing('One run failed.'));
    await page.goto(`/exports/${shown}`);
    await page.locator('.notice').getByRole('button', { name: 'Test destination' }).click();
    await page.getByRole('dialog', { name: 'Test destination' }).waitFor();
    await serveExport(page, well);
    await page.locator('.notice').waitFor({ state: 'detached' });
    expect(await page.getByRole('dialog', { name: 'Test destination' }).count()).toBe(1);
  });

  it('the question whether to cancel a run does not become a retry when the run ends', async () => {
    const { page } = opened;
    const run = await startBackfill(shown, 7);
    await page.goto(`/exports/${shown}?tab=runs`);
    const row = page.locator('tr', { has: page.locator(`a[href*="${run}"]`) });
    await row.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('dialog', { name: 'Cancel this run?' }).waitFor();
    await completeRun(api.journal, run, { rows: 4 });
    await readAgain(page);
    await row.locator('.status-badge', { hasText: 'Completed' }).waitFor();
    expect(await page.locator('dialog').count()).toBe(0);
  });

  it('a button that was pressed keeps the focus while its request runs, and when it does the opposite then', async () => {
    const { page } = opened;
    await page.goto(`/exports/${shown}`);
    const focused = () => page.evaluate('document.activeElement.innerText');
    const sent = Promise.withResolvers<undefined>();
    await page.route('**/pause/', async (route) => {
      await sent.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Pause', exact: true }).press('Enter');
    await page.locator('button[aria-busy]').waitFor();
    expect(await focused()).toBe('Pause');
    sent.resolve(undefined);
    await page.getByRole('button', { name: 'Unpause', exact: true }).waitFor();
    expect(await focused()).toBe('Unpause');
  });

  it('a backfill that is being started cannot be started again when its dry run has ended', async () => {
    const { page } = opened;
    await page.goto(`/exports/${shown}?tab=backfills`);
    const held = new Map([
      [true, Promise.withResolvers<undefined>()],
      [false, Promise.withResolvers<undefined>()],
    ]);
    await page.route('**/backfills/', async (route) => {
      if (route.request().method() === 'POST')
        await held.get((route.request().postDataJSON() as { dry_run?: boolean }).dry_run ?? false)?.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Backfill…' }).click();
    await page.getByRole('button', { name: 'Dry run' }).click();
    const start = page.getByRole('button', { name: 'Start backfill' });
    await start.click();
    held.get(true)?.resolve(undefined);
    await page.getByText('Rows in the source').waitFor();
    expect(await start.isDisabled()).toBe(true);
    held.get(false)?.resolve(undefined);
    await page.getByText('The backfill has started.').waitFor();
  });
});
