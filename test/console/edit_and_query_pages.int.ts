import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { configOf } from '../destination/bucket_requests.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  findOverlaps,
  findViolations,
  launchBrowser,
  openConsole,
  overflowsSideways,
  type ConsolePage,
} from './browser.ts';
import { describePages, type NamedPage } from './describe_pages.ts';

let api: ApiHarness;
let browser: Browser;
let baseUrl: string;
let id: string;
const bucket = useTestBucket();
const config = () => configOf(bucket, { prefix: `clicks/${randomUUID()}/{table}` });

beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_S3_RETRY_BUDGET: '1s',
    EXPORTD_DESTINATION_TEST_TIMEOUT: '60s',
  });
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), (array['$pageview', 'signed up', 'bought'])[n % 3 + 1], 'person ' || n % 40, md5((n % 40)::text)::uuid,
       jsonb_build_object('$browser', (array['Firefox', 'Chromium'])[n % 2 + 1], 'price', n), moment, moment
     from generate_series(0, 599) n
     cross join lateral (select $2::timestamptz - n * interval '15 minutes' - interval '1 second' as moment) m`,
    [api.projectId, minuteAgo(0)],
  );
  baseUrl = await api.listen();
  browser = await launchBrowser();
  id = await api.createExport({
    name: 'Clicks',
    destination: { type: 'S3', config: config() },
    end_at: null,
  });
});
afterAll(async () => {
  await browser.close();
  await api.close();
});

async function runQuery(page: Page, query?: string): Promise<void> {
  const editor = page.getByLabel('Query', { exact: true });
  if (query !== undefined) await editor.fill(query);
  await editor.press('Control+Enter');
  await page
    .getByRole('status')
    .filter({ hasText: /rows? in/ })
    .waitFor();
}

const trends = {
  kind: 'TrendsQuery',
  series: [
    {
      kind: 'EventsNode',
      event: 'bought',
      properties: [{ type: 'event', key: '$browser', value: 'Firefox' }],
    },
    { kind: 'EventsNode', event: '$pageview', math: 'dau' },
  ],
  dateRange: { date_from: '-7d' },
};
const funnel = {
  kind: 'FunnelsQuery',
  series: ['$pageview', 'bought'].map((event) => ({ kind: 'EventsNode', event })),
  breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
};

const pages: readonly NamedPage[] = [
  [
    'new',
    () => '/exports/new',
    async (page) => {
      await page.getByRole('heading', { name: 'Destination test' }).waitFor();
      await page.getByRole('table', { name: 'First rows' }).waitFor();
    },
  ],
  [
    'edit',
    () => `/exports/${id}/edit`,
    async (page) => {
      await page.getByText('Schedule').first().click();
      await page.getByRole('button', { name: 'Estimate' }).click();
      await page.getByText('Bytes, about').waitFor();
    },
  ],
  [
    'map a table',
    () => '/source?table=public.events',
    (page) => page.getByRole('table', { name: 'First rows' }).waitFor(),
  ],
  [
    'query',
    () => '/query',
    async (page) => {
      await runQuery(page);
      await page.getByRole('heading', { name: 'Run in this browser' }).waitFor();
    },
  ],
  [
    'chart',
    () => '/query',
    async (page) => {
      await runQuery(
        page,
        'select toDate(timestamp) as day, event, count() as events from events group by day, event order by day',
      );
      await page.getByRole('button', { name: 'Bars' }).click();
      await page.locator('.plot canvas').waitFor();
    },
  ],
  [
    'stacked bars',
    () => '/query',
    async (page) => {
      await runQuery(
        page,
        "select event, properties.$browser as browser, count() as n from events where event != 'left' group by event, browser",
      );
      await page.getByRole('button', { name: 'Chart' }).click();
      await page.locator('.bar-chart').waitFor();
    },
  ],
  [
    'long value',
    () => '/query',
    async (page) => {
      await runQuery(page, "select *, repeat('https://example.com/', 9) as url from events limit 20");
      await page.locator('.long-value').first().click();
      await page.getByRole('region', { name: 'Value' }).waitFor();
    },
  ],
  [
    'trends',
    () => `/query?query=${encodeURIComponent(JSON.stringify(trends))}`,
    async (page) => {
      await page.getByRole('button', { name: 'Run' }).click();
      await page.locator('.plot canvas').waitFor();
    },
  ],
  [
    'funnel',
    () => `/query?query=${encodeURIComponent(JSON.stringify(funnel))}`,
    async (page) => {
      await page.getByRole('button', { name: 'Run' }).click();
      await page.locator('.bar-chart').waitFor();
    },
  ],
  [
    'json',
    () =>
      `/query?query=${encodeURIComponent(JSON.stringify({ ...trends, compareFilter: { compare: true } }))}`,
    async (page) => {
      await page.getByText('The form cannot show').waitFor();
      await page.getByRole('button', { name: 'Edit its JSON' }).click();
      await page.getByLabel('Query as JSON').fill('{');
      await page.getByText('This is no JSON').waitFor();
    },
  ],
  [
    'saving a query',
    () => '/query',
    async (page) => {
      await page.getByRole('button', { name: 'Save…' }).click();
      await page.getByLabel('Name (required)').fill('Events by name');
      await page.getByText('From a terminal:').waitFor();
    },
  ],
  [
    'error',
    () => '/query',
    async (page) => {
      await page
        .getByLabel('Query', { exact: true })
        .fill('select evnt, count()\nfrom events\ngroup by evnt');
      await page.locator('.token-wrong').first().waitFor();
      await page.getByRole('button', { name: 'Run' }).click();
      await page.getByRole('alert').waitFor();
    },
  ],
];

describePages(() => ({ browser, baseUrl, key: api.key }), pages);

describe('a person', () => {
  let opened: ConsolePage;
  beforeAll(async () => {
    opened = await openConsole(browser, baseUrl, { key: api.key });
  });
  afterEach(() => opened.reset());
  afterAll(() => opened.close());

  it('maps a table by choosing its columns, and copies the script', async () => {
    const { page, problems } = opened;
    await api.database.pool.query(
      `create table orders_log (log_no bigint primary key, what text, customer text, payload jsonb,
         happened timestamptz, recorded timestamptz not null default clock_timestamp());
       insert into orders_log values (1, 'ordered', 'ada', '{}', now())`,
    );
    await page.goto('/exports/new');
    await page.getByRole('link', { name: 'Map a table to events' }).click();
    // The form of the export has fields with this label, too.
    await page.getByRole('heading', { name: 'Map a table', level: 1 }).waitFor();
    await page.getByLabel('Table').selectOption('public.orders_log');
    await page.getByLabel('Column for event', { exact: true }).selectOption('what');
    await page.getByLabel('Column for distinct_id').selectOption('customer');
    await page.getByRole('cell', { name: 'ordered', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Copy script' }).click();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).toMatch(
      /^create view [^]* {2}source\.what as event,\n[^]*\ncreate index concurrently on /,
    );
    expect(problems).toEqual([]);
  });

  it('creates an export, whose destination is tested before', async () => {
    const { page, problems } = opened;
    const entered = config();
    await page.goto('/exports/new');
    await page.getByRole('textbox', { name: 'Name (required)' }).fill('By hand');
    await page.getByRole('button', { name: 'Create export' }).click();
    await page.getByText('This field', { exact: false }).or(page.locator('.field-error')).first().waitFor();
    expect(await page.locator(':focus').getAttribute('data-attr')).toBe('destination__config__bucket_name');
    expect(await page.getByText(/^(Bucket|Region|Prefix) is required\.$/).count()).toBe(3);
    expect(await page.getByLabel('Access key ID').first().getAttribute('type')).toBe('text');
    for (const [label, value] of [
      ['Bucket', entered.bucket_name],
      ['Region', entered.region],
      ['Prefix', entered.prefix],
      ['Endpoint URL', entered.endpoint_url],
      ['Access key ID', entered.aws_access_key_id],
      ['Secret access key', entered.aws_secret_access_key],
    ] as const)
      await page.getByLabel(label).first().fill(value);
    await page.getByLabel('File format').selectOption('Parquet');
    await page.getByLabel('Compression', { exact: true }).selectOption('zstd');
    await page.getByText(/s3:\/\/.*\.parquet$/).waitFor();
    await page.getByRole('button', { name: 'Create export' }).click();
    await page.waitForURL(/\/exports\/[0-9a-f-]{36}$/);
    const created = await api.call('GET', `batch_exports/${page.url().split('/').pop() ?? ''}/`);
    expect(created.body).toMatchObject({
      name: 'By hand',
      destination: { config: { prefix: entered.prefix, file_format: 'Parquet', compression: 'zstd' } },
    });
    expect(problems).toEqual([]);
  });

  it('reads a long prefix whole, and finds tables and partitions without opening anything', async () => {
    const { page } = opened;
    await page.goto('/exports/new');
    const prefix = page.getByLabel('Prefix');
    await prefix.fill('events/{year}/{month}/{day}/{hour}/{table}/{data_interval_start}');
    expect(await prefix.evaluate((input) => input.scrollWidth <= input.clientWidth)).toBe(true);
    expect(await page.getByLabel('Table format').isVisible()).toBe(true);
    expect(await page.getByRole('textbox', { name: 'Partition by' }).isVisible()).toBe(true);
    await page.getByRole('button', { name: 'Add hour to partition by' }).waitFor();
    // Its only choice.
    expect(await page.getByLabel('Destination', { exact: true }).count()).toBe(0);
  });

  it('creates one export by two clicks', async () => {
    const { page } = opened;
    const tested = Promise.withResolvers<undefined>();
    const sent: string[] = [];
    await page.route('**/batch_exports/**', async (route) => {
      const path = new URL(route.request().url()).pathname;
      if (/\/batch_exports\/(test\/)?$/.test(path) && route.request().method() === 'POST') {
        sent.push(path.replace(/.*batch_exports/, ''));
        await tested.promise;
        await route.abort();
      } else await route.continue();
    });
    await page.goto('/exports/new');
    await page.getByRole('textbox', { name: 'Name (required)' }).fill('Twice');
    for (const label of ['Bucket', 'Region', 'Prefix']) await page.getByLabel(label).first().fill('twice');
    await page.getByRole('button', { name: 'Create export' }).dblclick();
    await page.getByText('Testing the destination…').waitFor();
    tested.resolve(undefined);
    await page.getByText('Testing the destination…').waitFor({ state: 'detached' });
    expect(sent).toEqual(['/test/']);
  });

  it('sees a destination test that fails before saving', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}/edit`);
    await page.getByLabel('Bucket', { exact: false }).first().fill('missing-bucket');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Save anyway' }).waitFor();
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    expect(body.destination).toMatchObject({ config: { bucket_name: bucket.bucket } });
  });

  it('changes an export without entering its secrets again', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}/edit`);
    await page.getByRole('textbox', { name: 'Name (required)' }).fill('Renamed');
    expect(await page.getByLabel('Secret access key').inputValue()).toBe('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForURL(`**/exports/${id}`);
    expect((await api.call('GET', `batch_exports/${id}/`)).body.name).toBe('Renamed');
    const { body } = await api.call('POST', `batch_exports/${id}/test/`, {});
    expect((body.steps as { result: { status: string } }[])[0]?.result.status).toBe('Passed');
  });

  it('sees what a change does before it is saved, and which key is stored', async () => {
    const { page, problems } = opened;
    await page.goto(`/exports/${id}/edit`);
    const end = config().aws_access_key_id.slice(-4);
    await page.getByText(`it ends in ${end}.`).waitFor();
    await page.getByLabel('Prefix').fill(`moved/${randomUUID()}`);
    await page.getByRole('button', { name: 'Save' }).click();
    const dialog = page.getByRole('dialog', { name: 'Save these changes?' });
    await dialog.getByText('their readers get nothing new there', { exact: false }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Back' }).click();
    expect((await api.call('GET', `batch_exports/${id}/`)).body.destination).not.toMatchObject({
      config: { prefix: expect.stringMatching(/^moved/) },
    });
    await page.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('button', { name: 'Save changes' }).click();
    await page.waitForURL(`**/exports/${id}`);
    await page.goto(`/exports/${id}?tab=settings`);
    await page.getByText(`…${end}`, { exact: true }).waitFor();
    // The words of the form, not those of the API.
    await page.getByText('On missing rows', { exact: true }).first().waitFor();
    await page.getByText('keep them in the bucket', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Who has changed the export, and what' }).click();
    await page.locator('.field-changes dt', { hasText: 'Prefix' }).first().waitFor();
    expect(problems).toEqual([]);
  });

  it('sees the error of a field at the field', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}/edit`);
    await page.getByLabel('Prefix').fill('a//b');
    const invalid = page.locator('.field-invalid', { hasText: 'must not contain "//"' });
    await invalid.waitFor();
    expect(await invalid.getByLabel('Prefix').inputValue()).toBe('a//b');
  });

  it('loads a page again that failed once, and offers to reload one that fails again', async () => {
    const fresh = await openConsole(browser, baseUrl, { key: api.key });
    const { page } = fresh;
    await page.route('**/query-*.js', (route) => route.abort(), { times: 1 });
    await page.goto('/query');
    await page.getByRole('heading', { name: 'Query', level: 1 }).waitFor();
    await page.route('**/query-*.js', (route) => route.abort());
    await page.goto('/query');
    const reload = page.getByRole('button', { name: 'Reload' });
    await reload.waitFor();
    await page.unroute('**/query-*.js');
    await reload.click();
    await page.getByRole('heading', { name: 'Query', level: 1 }).waitFor();
    expect(await reload.count()).toBe(0);
    await fresh.close();
  });

  it('completes and runs a query', async () => {
    const { page, problems } = opened;
    await page.goto('/query');
    const editor = page.getByLabel('Query', { exact: true });
    await page.getByText('events', { exact: true }).first().waitFor();
    await editor.fill('');
    await editor.pressSequentially('select uniqEx');
    await page
      .getByRole('option', { name: /uniqExact/ })
      .first()
      .waitFor();
    await editor.press('Enter');
    await editor.pressSequentially('distinct_id) as people from eve');
    await page.getByRole('option', { name: /^events/ }).waitFor();
    await editor.press('Tab');
    expect(await editor.inputValue()).toBe('select uniqExact(distinct_id) as people from events');
    await editor.press('Control+z');
    expect(await editor.inputValue()).toBe('select uniqExact(distinct_id) as people from eve');
    await editor.press('Control+Shift+z');
    expect(await editor.inputValue()).toBe('select uniqExact(distinct_id) as people from events');
    await runQuery(page);
    expect(await page.getByRole('table').innerText()).toContain('40');
    expect(new URL(page.url()).searchParams.get('sql')).toContain('uniqExact');
    expect(problems).toEqual([]);
  });

  it('gets a form back as it was typed, except secrets', async () => {
    const { page } = opened;
    await page.goto('/exports/new');
    await page.getByRole('textbox', { name: 'Name (required)' }).fill('Half done');
    await page.getByLabel('Secret access key').fill('never/stored');
    await page.getByRole('link', { name: 'Query' }).click();
    await page.getByRole('heading', { name: 'Query', level: 1 }).waitFor();
    expect(JSON.stringify(await page.evaluate('({ ...sessionStorage, ...localStorage })'))).not.toContain(
      'never/stored',
    );
    await page.goBack();
    await page.getByText('What you typed is here again, except secrets.').waitFor();
    expect(await page.getByRole('textbox', { name: 'Name (required)' }).inputValue()).toBe('Half done');
    expect(await page.getByLabel('Secret access key').inputValue()).toBe('');
    await page.getByRole('button', { name: 'Start over' }).click();
    expect(await page.getByRole('textbox', { name: 'Name (required)' }).inputValue()).toBe('');
    await page.reload();
    await page.getByRole('textbox', { name: 'Name (required)' }).waitFor();
    expect(await page.getByText('What you typed is here again').count()).toBe(0);
  });

  it('sorts and downloads a result, sees whole values, and finds the query again', async () => {
    const { page, problems } = opened;
    await page.goto('/query');
    const wide =
      "select event, count() as events, repeat('x', 300) as wide from events group by event order by event";
    await runQuery(page, wide);
    const cells = page.getByRole('table').locator('tbody tr td:first-child');
    expect(await cells.allInnerTexts()).toEqual(['$pageview', 'bought', 'signed up']);
    const sort = page.getByRole('button', { name: 'event', exact: true });
    await sort.click();
    await sort.click();
    expect(await cells.allInnerTexts()).toEqual(['signed up', 'bought', '$pageview']);
    expect(
      await page.getByRole('columnheader', { name: 'event', exact: true }).getAttribute('aria-sort'),
    ).toBe('descending');
    const long = page.getByRole('button', { name: /^Show wide, row 1: x+$/ });
    await long.focus();
    await page.keyboard.press('Enter');
    const panel = page.getByRole('region', { name: 'Value' });
    expect(await panel.locator('pre').innerText()).toBe('x'.repeat(300));
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    expect(await long.evaluate((button) => button.ownerDocument.activeElement === button)).toBe(true);
    const saved = async (name: string): Promise<string> => {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      return readFileSync(await file.path(), 'utf8');
    };
    expect((await saved('Download CSV')).split('\r\n')[1]).toBe(`$pageview,200,${'x'.repeat(300)}`);
    expect(JSON.parse(await saved('Download JSON'))).toHaveLength(3);

    const editor = page.getByLabel('Query', { exact: true });
    await editor.fill('select 1');
    await page.getByText('The query has changed since: run it again.').waitFor();
    await page.getByRole('button', { name: wide, exact: true }).click();
    expect(await editor.inputValue()).toBe(wide);
    await page.reload();
    await page.getByRole('button', { name: `Remove ${wide}` }).waitFor();
    expect(problems).toEqual([]);
  });

  it('reads each row of a wide result in one line, and tells the lines of a chart apart', async () => {
    const { page } = opened;
    await page.goto('/query');
    await runQuery(page, 'select * from events limit 20');
    const heights = await page.evaluate<number[]>(
      `[...document.querySelectorAll('.query-result tbody tr')].map((row) => row.getBoundingClientRect().height)`,
    );
    expect(heights).toHaveLength(20);
    // A button is higher than a line of text.
    expect(Math.max(...heights)).toBeLessThan(60);
    expect(await overflowsSideways(page)).toBe(false);
    await runQuery(
      page,
      'select toDate(timestamp) as day, count() as events, uniq(distinct_id) as people from events group by day order by day',
    );
    await page.getByRole('button', { name: 'Lines' }).click();
    const names = page.locator('.plot figcaption li');
    expect(await names.allInnerTexts()).toEqual(['events', 'people']);
    const looks = await page.evaluate<string[]>(
      `[...document.querySelectorAll('.plot-line')].map((line) => getComputedStyle(line).color + line.firstElementChild.getAttribute('stroke-dasharray'))`,
    );
    expect(new Set(looks).size).toBe(2);
  });

  it('reads times in the zone of the project, which the header names, on a phone too', async () => {
    await api.database.pool.query("update exportd.projects set timezone = 'America/New_York' where id = $1", [
      api.projectId,
    ]);
    const phone = await openConsole(browser, baseUrl, { key: api.key, device: 'phone' });
    try {
      const { page } = phone;
      await page.goto('/query');
      await runQuery(
        page,
        "select timestamp as at, toTimeZone(timestamp, 'UTC') as utc, 1 as n from events limit 2",
      );
      const headers = await page.getByRole('columnheader').allInnerTexts();
      expect(headers).toEqual(['at (America/New_York)', 'utc (UTC)', 'n']);
      const first = page.getByRole('table').locator('tbody tr').first();
      const [at = '', utc = ''] = await first.locator('td').allInnerTexts();
      // Without the offset of ISO 8601: parsed in one zone, they are as far apart as their clocks.
      expect([4, 5]).toContain((Date.parse(`${utc}Z`) - Date.parse(`${at}Z`)) / 3_600_000);
      expect((await first.boundingBox())?.height).toBeLessThan(60);
      expect(await overflowsSideways(page)).toBe(false);
    } finally {
      await phone.close();
      await api.database.pool.query("update exportd.projects set timezone = 'UTC' where id = $1", [
        api.projectId,
      ]);
    }
  });

  it('sees a line for each event of a result in long form, with the values at the pointer', async () => {
    const { page, problems } = opened;
    await page.goto('/query');
    await runQuery(
      page,
      'select toStartOfDay(timestamp) as d, event, count() as n from events group by d, event order by d',
    );
    await page.getByRole('button', { name: 'Lines' }).click();
    const legend = page.locator('.plot figcaption li');
    expect((await legend.allInnerTexts()).toSorted()).toEqual(['$pageview', 'bought', 'signed up']);
    const plot = page.locator('.plot .u-over');
    await plot.hover();
    const tooltip = page.locator('.plot-tooltip');
    await tooltip.waitFor();
    expect(await tooltip.locator('li').count()).toBe(3);
    expect(await tooltip.locator('p').innerText()).toMatch(/^\d{4}-\d\d-\d\d$/);
    await page.getByRole('button', { name: 'Bars' }).click();
    await plot.hover();
    await tooltip.waitFor();
    // A stack: the values are those of the lines, its height their sum.
    expect(await tooltip.locator('li').count()).toBe(3);
    expect(problems).toEqual([]);
  });

  it('is told why a result has no chart', async () => {
    const { page } = opened;
    await page.goto('/query');
    await runQuery(page, "select distinct_id, event from events where event = 'bought' limit 5");
    await page.getByRole('button', { name: 'Chart' }).click();
    const why = page.getByText('No chart, because no column is a number: select count() or another one.');
    await why.waitFor();
    expect(await page.locator('.plot, .bar-chart').count()).toBe(0);
  });

  it('builds a trend and a funnel by form, and reads both as JSON', async () => {
    const { page, problems } = opened;
    await page.goto('/query');
    const run = async () => {
      await page.getByRole('button', { name: 'Run' }).click();
      await page
        .getByRole('status')
        .filter({ hasText: /rows? in/ })
        .waitFor();
    };
    const view = (name: string) =>
      page.getByRole('group', { name: 'Write the query as' }).getByRole('button', { name }).click();
    await view('Trends');
    await page.getByLabel('Event', { exact: true }).fill('bought');
    await page.getByLabel('Count', { exact: true }).selectOption('people');
    await page.getByRole('button', { name: 'Filter all' }).click();
    await page.getByLabel('Property', { exact: true }).fill('$browser');
    await page.getByLabel('Value', { exact: true }).fill('Firefox');
    await page.getByLabel('Break down by').fill('$browser');
    await run();
    expect(await page.locator('.plot').count()).toBe(1);
    await view('JSON');
    const json = page.getByLabel('Query as JSON');
    expect(JSON.parse(await json.inputValue())).toEqual({
      kind: 'TrendsQuery',
      series: [{ kind: 'EventsNode', event: 'bought', math: 'dau' }],
      dateRange: { date_from: '-7d' },
      interval: 'day',
      properties: [{ type: 'event', key: '$browser', operator: 'exact', value: 'Firefox' }],
      breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
      trendsFilter: { display: 'ActionsLineGraph' },
    });
    await json.fill((await json.inputValue()).replace('"dau"', '"total"').replace('"-7d"', '"-30d"'));
    await view('Trends');
    expect(await page.getByLabel('Count', { exact: true }).inputValue()).toBe('total');
    expect(await page.getByLabel('Time', { exact: true }).inputValue()).toBe('-30d');
    await view('JSON');
    await json.fill((await json.inputValue()).replace('"total"', '"hogql", "math_hogql": "count()"'));
    await view('Trends');
    await page.getByText('The form cannot show series[0].math of this query. It runs unchanged.').waitFor();
    await view('Funnel');
    await page.getByLabel('Event', { exact: true }).first().fill('$pageview');
    await page.getByLabel('Event', { exact: true }).nth(1).fill('bought');
    await page.getByLabel('Window', { exact: true }).fill('3');
    await run();
    const bars = page.locator('.bar-row dt');
    await bars.first().waitFor();
    expect(await bars.allInnerTexts()).toEqual(['1. $pageview', '2. bought']);
    await view('JSON');
    expect(JSON.parse(await json.inputValue())).toMatchObject({
      kind: 'FunnelsQuery',
      funnelsFilter: { funnelWindowInterval: 3, funnelWindowIntervalUnit: 'day' },
    });
    // What is wrong is named.
    await json.fill('{"kind": "FunnelsQuery", "series": []}');
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('alert').getByText('series: Funnels require at least two steps.').waitFor();
    expect(problems).toEqual([]);
  });

  it('is told of a name that no event has', async () => {
    const { page } = opened;
    await page.goto('/query');
    await runQuery(page, "select count() from events where event = 'bougt'");
    await page.getByText('No event bougt in 90 days. Did you mean bought?').waitFor();
    expect(await page.getByRole('cell').allInnerTexts()).toEqual(['0']);
  });

  it('saves a query, whose link runs it for another person, who cannot overwrite it unasked', async () => {
    const { page, problems } = opened;
    const name = `Bought ${randomUUID()}`;
    await page.goto('/query');
    await runQuery(page, "select count() as n from events where event = 'bought'");
    await page.getByRole('button', { name: 'Save…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Save the query' });
    await dialog.getByLabel('Name (required)').fill(name);
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    const link = page.getByRole('link', { name });
    await link.waitFor();
    await waitFor(() => Promise.resolve(page.url().includes('saved=')), 'the address of the saved query');
    expect(new URL(page.url()).searchParams.has('sql')).toBe(false);

    const other = await openConsole(browser, baseUrl, { key: api.key });
    try {
      const rows = other.page.getByRole('status').filter({ hasText: '1 row in' });
      await other.page.goto(page.url());
      await rows.waitFor();
      const editor = other.page.getByLabel('Query', { exact: true });
      expect(await editor.inputValue()).toContain("event = 'bought'");
      // Both change it; the second sees the first, and decides.
      await editor.fill('select 2 as n');
      await other.page.getByRole('button', { name: 'Save changes' }).click();
      await other.page.getByText('Saved.').waitFor();
      await page.getByLabel('Query', { exact: true }).fill('select 3 as n');
      await page.getByRole('button', { name: 'Save changes' }).click();
      const conflict = page.getByRole('dialog', { name: `Another version of “${name}” is saved` });
      await conflict.getByText('ada@example.com saved version 2').waitFor();
      expect(await findViolations(page)).toEqual([]);
      await conflict.getByRole('button', { name: 'Open that one' }).click();
      await waitFor(
        async () => (await page.getByLabel('Query', { exact: true }).inputValue()) === 'select 2 as n',
        'the version of the other person',
      );
      await page.getByLabel('Query', { exact: true }).fill('select 4 as n');
      await page.getByRole('button', { name: 'Save changes' }).click();
      await waitFor(async () => {
        const { body } = await api.call('GET', `saved_queries/?name=${encodeURIComponent(name)}`);
        const [saved] = body.results as { query: { query: string } }[];
        return saved?.query.query === 'select 4 as n';
      }, 'the change');
    } finally {
      await other.close();
    }

    await page.getByRole('button', { name: 'Rename…' }).click();
    await page.getByLabel('Name (required)').fill(`${name} 2`);
    await page.getByRole('button', { name: 'Rename', exact: true }).click();
    await page.getByRole('link', { name: `${name} 2` }).waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await link.waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  it('sees what a link to a deleted query is, and without query:write how to run but not to save', async () => {
    const { key } = await api.newKey(api.projectId, ['query:read']);
    const { body } = await api.call('POST', 'saved_queries/', {
      name: `Shared ${randomUUID()}`,
      query: { kind: 'DialectQuery', query: 'select 7 as n' },
    });
    const reader = await openConsole(browser, baseUrl, { key });
    try {
      await reader.page.goto(`/query?saved=${String(body.id)}`);
      await reader.page.getByRole('cell', { name: '7' }).waitFor();
      expect(await reader.page.getByRole('button', { name: /^(Save|Rename|Delete)/ }).count()).toBe(0);
      await reader.page.goto(`/query?saved=${randomUUID()}`);
      await reader.page.getByText('There is no such saved query.').waitFor();
      expect(reader.problems).toEqual([]);
    } finally {
      await reader.close();
    }
  });

  it('sees panels beside a form that cover nothing below it, however long they are', async () => {
    const { page } = opened;
    await page.goto(`/exports/${id}/edit`);
    await page.getByRole('table', { name: 'First rows' }).waitFor();
    await page.getByRole('button', { name: 'Test destination' }).click();
    await page.locator('.test-steps').waitFor();
    await page.getByRole('button', { name: 'Estimate' }).click();
    await page.getByText('Bytes, about').waitFor();
    await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
    expect(await findOverlaps(page)).toEqual([]);
  });

  it('describes a query in words, and is told when they are not understood', async () => {
    const { page } = opened;
    await page.goto('/query');
    const words = page.getByLabel('Describe it in words');
    await words.fill('how many events per day last week');
    await page.getByRole('button', { name: 'Draft SQL' }).click();
    const editor = page.getByLabel('Query', { exact: true });
    await waitFor(
      async () => /count\(\)/i.test(await editor.inputValue()) && /day/i.test(await editor.inputValue()),
      'the draft is in the editor',
    );
    await words.fill('blue');
    await page.getByRole('button', { name: 'Draft SQL' }).click();
    await page.locator('.described-query .field-error').waitFor();
  });

  it('sees that the source lacks its relation instead of an empty list of tables', async () => {
    const { page } = opened;
    const detail = 'The source has no relation "events".';
    await page.route(
      '**/console/query/vocabulary/',
      (route) =>
        route.fulfill({
          status: 503,
          json: { type: 'server_error', code: 'source_unreachable', detail, attr: null },
        }),
      { times: 1 },
    );
    await page.goto('/query');
    await page.getByText(detail).waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('.schema-list summary').first().waitFor();
    expect(await page.getByText(detail).count()).toBe(0);
  });

  it('cancels a query', async () => {
    const { page } = opened;
    await page.goto('/query');
    const editor = page.getByLabel('Query', { exact: true });
    // Each row is compared with all rows of four copies: it ends when it is cancelled.
    await editor.fill(
      'select count() from events a join events b on 1 = 1 join events c on 1 = 1 join events d on 1 = 1',
    );
    await editor.press('Control+Enter');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText(/^Cancelled after/).waitFor();
    expect(await page.getByRole('button', { name: 'Run' }).isEnabled()).toBe(true);
  });

  it('without the scopes sees neither form nor editor', async () => {
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const narrow = await openConsole(browser, baseUrl, { key });
    try {
      await narrow.page.goto('/exports/new');
      await narrow.page.getByText('This key lacks the scope batch_export:write').waitFor();
      await narrow.page.goto('/query');
      await narrow.page.getByText('This key lacks the scope query:read').waitFor();
      expect(narrow.problems).toEqual([]);
    } finally {
      await narrow.close();
    }
  });
});
