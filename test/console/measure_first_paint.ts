import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { medianOf } from '../bench/results.ts';
import { launchBrowser, openConsole } from './browser.ts';

// Prints when Chromium first paints pages of a running demo with a cold cache, in milliseconds:
// node test/console/measure_first_paint.ts <demo.json> [repeat]

interface Demo {
  readonly base_url: string;
  readonly api_key: string;
}

const paintsOf = `new Promise((resolve) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName('first-contentful-paint');
  if (found.length > 0) resolve([performance.getEntriesByName('first-paint')[0]?.startTime, found[0].startTime]);
}).observe({ type: 'paint', buffered: true }))`;

const [demoFile, repeat = '10'] = process.argv.slice(2);
if (demoFile === undefined)
  throw new Error('Usage: node test/console/measure_first_paint.ts <demo.json> [repeat]');
const demo = JSON.parse(readFileSync(demoFile, 'utf8')) as Demo;
const browser = await launchBrowser();
for (const [name, path, key] of [
  ['sign-in', '/', undefined],
  ['exports', '/', demo.api_key],
  ['query', '/query', demo.api_key],
] as const) {
  const paints: [first: number, contentful: number][] = [];
  for (let count = 0; count < Number(repeat); count += 1) {
    // A new context has an empty cache.
    const opened = await openConsole(browser, demo.base_url, key === undefined ? {} : { key });
    await opened.page.goto(path);
    paints.push(await opened.page.evaluate<[number, number]>(paintsOf));
    await opened.close();
  }
  const [first, contentful] = [0, 1].map((index) =>
    medianOf(paints.map((paint) => paint[index] ?? 0)).toFixed(),
  );
  process.stdout.write(`${name}: first paint ${first} ms, with content ${contentful} ms\n`);
}
await browser.close();
process.stdout.write(`load of the machine: ${loadavg()[0]?.toFixed(1)}\n`);
