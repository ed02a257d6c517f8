import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import type { HttpApp } from '../../../src/http/route_context.ts';
import { launchBrowser, openConsole, takeScreenshot } from '../../console/browser.ts';
import { createServerlessApp } from '../../../src/http/serverless_app.ts';

let app: HttpApp;
let browser: Browser;
let baseUrl: string;
beforeAll(async () => {
  app = await createServerlessApp();
  baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await app.close();
});

it('the page of the OpenAPI document shows every group and its examples, with nothing of another host', async () => {
  const opened = await openConsole(browser, baseUrl);
  const { page, problems } = opened;
  await page.goto('/api/docs');
  await page.locator('.opblock-tag-section').first().waitFor();
  const groups = await page
    .locator('.opblock-tag')
    .evaluateAll((tags) => tags.map((tag) => (tag as { dataset: Record<string, string> }).dataset.tag));
  expect(groups).toEqual([
    'Batch exports',
    'Runs',
    'Backfills',
    'Intervals and logs',
    'Jobs',
    'Webhooks',
    'Source',
    'Queries',
    'Dashboards',
    'API keys',
    'Audit',
    'Projects',
    'Monitoring',
  ]);
  const created = page.locator('.opblock-post', { hasText: 'Create webhook' });
  await created.locator('.opblock-summary-control').click();
  await created.getByText('https://example.com/hooks/exportd').first().waitFor();
  await created.getByText('whsec_').first().waitFor();
  const folder = process.env.EXPORTD_SCREENSHOTS;
  if (folder !== undefined) await takeScreenshot(page, folder, 'api_docs');
  expect(problems).toEqual([]);
  await opened.close();
});
