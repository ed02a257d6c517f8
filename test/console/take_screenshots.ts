import { readFileSync } from 'node:fs';
import {
  devices,
  launchBrowser,
  openConsole,
  takeScreenshot,
  type ColorScheme,
  type Device,
} from './browser.ts';

// Takes a picture of every page of a running demo: node test/console/take_screenshots.ts <demo.json> <folder>

interface Demo {
  readonly base_url: string;
  readonly project_id: number;
  readonly api_key: string;
  readonly batch_export_id: string;
}

const query = `SELECT event, count() AS events, uniq(distinct_id) AS people
FROM events
GROUP BY event
ORDER BY events DESC`;

/** Pages by the name of their picture. */
async function pathsOf(demo: Demo): Promise<Readonly<Record<string, string>>> {
  const own = `/exports/${demo.batch_export_id}`;
  const response = await fetch(
    `${demo.base_url}/api/projects/${demo.project_id}/batch_exports/${demo.batch_export_id}/intervals/?status=exported&limit=1`,
    { headers: { authorization: `Bearer ${demo.api_key}` } },
  );
  const { results } = (await response.json()) as { results: { data_interval_start: string }[] };
  const start = results[0]?.data_interval_start ?? '';
  return {
    exports: '/',
    export: own,
    runs: `${own}?tab=runs`,
    backfills: `${own}?tab=backfills`,
    log: `${own}?tab=log`,
    read: `${own}?tab=read`,
    settings: `${own}?tab=settings`,
    webhooks: `${own}?tab=webhooks`,
    interval: `${own}/intervals/${encodeURIComponent(start)}`,
    edit: `${own}/edit`,
    new: '/exports/new',
    keys: '/keys',
    audit: '/audit',
    query: `/query?sql=${encodeURIComponent(query)}`,
  };
}

const [demoFile, folder, only] = process.argv.slice(2);
if (demoFile === undefined || folder === undefined)
  throw new Error('Usage: node test/console/take_screenshots.ts <demo.json> <folder> [page]');
const demo = JSON.parse(readFileSync(demoFile, 'utf8')) as Demo;
const browser = await launchBrowser();
const paths = Object.entries(await pathsOf(demo)).filter(([name]) => only === undefined || name === only);
for (const device of Object.keys(devices) as Device[])
  for (const colorScheme of ['light', 'dark'] as ColorScheme[]) {
    const window = await openConsole(browser, demo.base_url, {
      device,
      colorScheme,
      key: demo.api_key,
    });
    const { page, problems } = window;
    for (const [name, path] of paths) {
      await page.goto(path);
      await page.locator('h1').waitFor();
      // Server-sent events keep a connection open, so the network never rests.
      await page.locator('.loaded[aria-busy], .loading').first().waitFor({ state: 'detached' });
      if ((await page.locator('.plot').count()) > 0) await page.locator('.plot canvas').last().waitFor();
      if (name === 'query') {
        await page.getByRole('button', { name: 'Run', exact: true }).click();
        await page.locator('.query-result td').first().waitFor();
      }
      await takeScreenshot(page, folder, `${name}_${device}_${colorScheme}`);
    }
    if (only === undefined || only === 'sign_in') {
      await page.context().clearCookies();
      await page.goto('/');
      await page.getByLabel('API key').waitFor();
      await takeScreenshot(page, folder, `sign_in_${device}_${colorScheme}`);
    }
    for (const problem of problems) process.stderr.write(`${device}, ${colorScheme}: ${problem}\n`);
    await window.close();
  }
await browser.close();
