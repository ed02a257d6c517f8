import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import {
  findOverlaps,
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

/** The height of the navigation in pixels: one row of it, whatever the scopes of the key. 0 before a sign-in. */
const heightOfBar = (page: Page): Promise<number> =>
  page.evaluate<number>('document.querySelector(".top-bar")?.offsetHeight ?? 0');

/**
 * Tests that pages are accessible, no wider than the window, without texts that cover others and without errors: once each, on a phone in the dark. The other tests
 * of the console see them in light on a desktop, and `files.unit.ts` compares all colours of both themes.
 * @param connect the browser, the server and a key, once they exist
 */
export function describePages(
  connect: () => { readonly browser: Browser; readonly baseUrl: string; readonly key: string },
  pages: readonly NamedPage[],
): void {
  describe('on a phone in the dark', () => {
    let opened: ConsolePage;
    beforeAll(async () => {
      const { browser, baseUrl, key } = connect();
      opened = await openConsole(browser, baseUrl, { device: 'phone', colorScheme: 'dark', key });
    });
    afterAll(() => opened.close());

    it.each(pages)('%s is accessible, fits and has no error', async (name, path, show) => {
      const { page, problems } = opened;
      await page.goto(path());
      await show(page);
      await page.locator('[aria-busy=true], .loading').first().waitFor({ state: 'detached' });
      if (screenshots) await takeScreenshot(page, screenshots, name);
      expect(await findViolations(page)).toEqual([]);
      expect(await overflowsSideways(page)).toBe(false);
      expect(await findOverlaps(page)).toEqual([]);
      expect(await heightOfBar(page)).toBeLessThan(64);
      expect(problems).toEqual([]);
    });
  });
}
