import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { chromiumPath } from '../setup/programs.ts';
import { v8OfTests } from '../setup/v8_options.ts';

/** The sizes of windows that pages are looked at in. */
export const devices = {
  desktop: { width: 1440, height: 900 },
  phone: { width: 360, height: 740 },
} as const;
export type Device = keyof typeof devices;
export type ColorScheme = 'light' | 'dark';

/** As long as `waitFor` waits: on a busy machine Chromium takes longer than the 30 seconds of Playwright. */
const timeoutMs = 180_000;

/** A page of the console in Chromium, with what went wrong in it. */
export interface ConsolePage {
  readonly page: Page;
  /** Errors of scripts and of the Content-Security-Policy, and requests to other hosts. A test expects none. */
  readonly problems: readonly string[];
  /** Makes the window as it was when it was opened, in a tenth of the time that another one takes. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** Starts Chromium without a window. */
export const launchBrowser = async (): Promise<Browser> =>
  chromium.launch({
    executablePath: await chromiumPath(),
    timeout: timeoutMs,
    // Containers do not allow Chromium its sandbox, and their /dev/shm is small.
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--disable-gpu',
      // A page that follows another one of its window has its process, and what V8 has compiled of the console.
      '--renderer-process-limit=1',
      '--disable-site-isolation-trials',
      `--js-flags=${v8OfTests.join(' ')}`,
    ],
  });

/** Opens a window on a server. Nobody is signed in, unless `key` is given. */
export async function openConsole(
  browser: Browser,
  baseUrl: string,
  options: { readonly device?: Device; readonly colorScheme?: ColorScheme; readonly key?: string } = {},
): Promise<ConsolePage> {
  const { device = 'desktop', colorScheme = 'light', key } = options;
  const context = await browser.newContext({
    baseURL: baseUrl,
    viewport: devices[device],
    colorScheme,
    isMobile: device === 'phone',
    hasTouch: device === 'phone',
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(timeoutMs);
  if (key !== undefined) await keepKey(context, baseUrl, key);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('console', (message) => {
    // Chromium logs each response that is an error. Tests of errors expect those.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== new URL(baseUrl).origin)
      problems.push(`request to another host: ${request.url()}`);
  });
  const reset = async (): Promise<void> => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    for (const other of context.pages()) if (other !== page) await other.close();
    // A page of the server without scripts, rather than an empty one, after which Chromium starts another process.
    await page.goto(`${baseUrl}/livez`);
    await page.evaluate('localStorage.clear(); sessionStorage.clear()');
    await context.clearCookies();
    if (key !== undefined) await keepKey(context, baseUrl, key);
    problems.length = 0;
  };
  return { page, problems, reset, close: () => context.close() };
}

/** Signs in as the sign-in page does, without showing it. */
async function keepKey(context: BrowserContext, baseUrl: string, key: string): Promise<void> {
  const response = await context.request.post(`${baseUrl}/console/session`, {
    headers: { 'x-exportd-console': '1', origin: baseUrl },
    data: { key },
  });
  if (response.status() !== 200) throw new Error(`Signing in failed: ${await response.text()}`);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A rule of axe-core that a page breaks. */
interface Violation {
  readonly rule: string;
  readonly help: string;
  readonly elements: readonly string[];
}

/**
 * Checks the page as it is shown now against the accessibility rules of axe-core (WCAG 2.2 AA and best practices), or only the dialog
 * that covers it: `describePages` checks pages without one.
 */
export async function findViolations(page: Page): Promise<Violation[]> {
  // Evaluated by the debugger, which the Content-Security-Policy does not restrict.
  await page.evaluate(axe);
  const { violations } = await page.evaluate<{
    violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
  }>(
    'axe.run([...document.querySelectorAll("dialog[open]")].at(-1) ?? document, { resultTypes: ["violations"] })',
  );
  return violations.map(({ id, help, nodes }) => ({
    rule: id,
    help,
    elements: nodes.map(({ html, failureSummary }) => `${html}: ${failureSummary ?? ''}`),
  }));
}

/** Whether something is wider than the window, so that a phone would scroll sideways. */
export const overflowsSideways = (page: Page): Promise<boolean> =>
  page.evaluate<boolean>('document.documentElement.scrollWidth > document.documentElement.clientWidth');

/**
 * Finds texts that cover each other by more than two pixels, as `one | other`. What is hidden, cut by an ellipsis or scrolled out of
 * its box is left out, and so is what a dialog covers.
 */
export const findOverlaps = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const root = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
    const texts = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.trim();
      const parent = node.parentElement;
      if (text === '' || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const { left, top, right, bottom } of range.getClientRects()) {
        const box = { text, parent, left, top, right, bottom };
        for (let around = parent; around; around = around.parentElement) {
          const { overflow, clipPath, position } = getComputedStyle(around);
          // A link to skip to waits above the window.
          if (position === 'fixed' && box.bottom <= 0) box.right = box.left;
          if (overflow === 'visible' && clipPath === 'none') continue;
          const clip = clipPath === 'none' ? around.getBoundingClientRect() : { left: 0, top: 0, right: 0, bottom: 0 };
          box.left = Math.max(box.left, clip.left);
          box.top = Math.max(box.top, clip.top);
          box.right = Math.min(box.right, clip.right);
          box.bottom = Math.min(box.bottom, clip.bottom);
        }
        if (box.right > box.left && box.bottom > box.top) texts.push(box);
      }
    }
    const covered = new Set();
    for (const [index, one] of texts.entries())
      for (const other of texts.slice(index + 1)) {
        const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        // The lines of a text are close, and an editor draws its text below that of its area.
        if (width > 2 && height > 4 && one.parent !== other.parent) covered.add(one.text.slice(0, 40) + ' | ' + other.text.slice(0, 40));
      }
    return [...covered];
  })()`);

/** Saves a picture of the whole page. */
export async function takeScreenshot(page: Page, folder: string, name: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
