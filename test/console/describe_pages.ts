import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { casesOf } from '../setup/effort.ts';
import {
  findViolations,
  openConsole,
  overflowsSideways,
  takeScreenshot,
  type ConsolePage,
} from './browser.ts';

/** A page by the name of its picture: its path, and what a person does there until it is shown. */
export type NamedPage = readonly [name: string, path: () => string, show: (page: Page) => Promise<void>];

/** Set to a folder to look at the pages. */
const screenshots = process.env.EXPORTD_SCREENSHOTS;

const desktop = { device: 'desktop', colorScheme: 'light' } as const;
const phone = { device: 'phone', colorScheme: 'dark' } as const;

/** The height of the navigation in pixels: one row of it, whatever the scopes of the key. 0 before a sign-in. */
const heightOfBar = (page: Page): Promise<number> =>
  page.evaluate<number>('document.querySelector(".top-bar")?.offsetHeight ?? 0');

/**
 * Tests that pages are accessible, no wider than the window and without errors. On a phone in dark; the other tests of the
 * console see the pages in light on a desktop.
 * @param connect the browser, the server and a key, once they exist
 */
export function describePages(
  connect: () => { readonly browser: Browser; readonly baseUrl: string; readonly key: string },
  pages: readonly NamedPage[],
): void {
  describe.each(casesOf([phone], [desktop, phone]))(
    'in $colorScheme on a $device',
    ({ device, colorScheme }) => {
      let opened: ConsolePage;
      beforeAll(async () => {
        const { browser, baseUrl, key } = connect();
        opened = await openConsole(browser, baseUrl, { device, colorScheme, key });
      });
      afterAll(() => opened.close());

      it.each(pages)('%s is accessible, fits and has no error', async (name, path, show) => {
        const { page, problems } = opened;
        await page.goto(path());
        await show(page);
        // The stream of changes never ends, so the network is never idle.
        await page.locator('[aria-busy=true], .loading').first().waitFor({ state: 'detached' });
        if (screenshots) await takeScreenshot(page, screenshots, `${name}-${colorScheme}-${device}`);
        expect(await findViolations(page)).toEqual([]);
        expect(await overflowsSideways(page)).toBe(false);
        expect(await heightOfBar(page)).toBeLessThan(64);
        expect(problems).toEqual([]);
      });
    },
  );
}
