import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertEvents as insertBenchEvents } from '../bench/events.ts';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents, keysUnder, readManifest } from './rows.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** List prices of S3 Standard in us-east-1 in USD (aws.amazon.com/s3/pricing). Deletions are free. */
const putPrice = 0.005 / 1_000;
const getPrice = 0.0004 / 1_000;
const gets: readonly string[] = ['GetObject', 'HeadObject'];

const largeRows = 1_000_000;
const largeHour = 40;
const smallHours = 20;
const formats = [
  { file_format: 'JSONLines', compression: 'gzip' },
  { file_format: 'Parquet', compression: 'zstd' },
] as const;

let stack: Stack;
let proxy: S3Proxy;
const table: string[] = [];

beforeAll(async () => {
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack('prices', {}, { bucket: { ...bucket, endpoint: proxy.endpoint } });
  for (let hour = 3; hour <= smallHours + 3; hour += 1)
    await insertEvents(stack.pool, stack.projectId, hourAgo(hour), 20);
  const start = hourAgo(largeHour);
  const rows = { count: largeRows, hours: 1, projects: 1, teamId: stack.projectId, start };
  await insertBenchEvents(stack.databaseUrl, rows, () => undefined, new AbortController().signal);
  // The first interval shows what the store does.
  await backfill(await createExport('first'), 3, 2);
});
afterAll(async () => {
  process.stdout.write(`${['what | requests | USD', ...table].join('\n')}\n`);
  await stack.stop();
  await proxy.close();
});

const createExport = (prefix: string, config: object = {}): Promise<string> =>
  stack.createExport({}, { prefix, ...config });

/** Backfills hours, and waits for the runs. */
async function backfill(id: string, from: number, to: number): Promise<RunResponse[]> {
  await stack.call('POST', `/batch_exports/${id}/backfill/`, {
    start_at: hourAgo(from).toISOString(),
    end_at: hourAgo(to).toISOString(),
  });
  const runs = await waitFor(async () => {
    const found = await stack.runs(id);
    return found.length === from - to && found;
  }, 'all runs exist');
  return Promise.all(runs.map((run) => stack.waitForRun(id, run.id, 'Completed')));
}

/** Counts the requests of some work about an export, and adds a line to the table. A list has up to 1,000 objects. */
async function measure(
  what: string,
  { prefix, per = 1 }: { readonly prefix: string; readonly per?: number },
  work: () => Promise<unknown>,
): Promise<number> {
  const before = proxy.requests.length;
  await work();
  const requests = proxy.requests
    .slice(before)
    .filter(
      ({ operation, key }) => operation !== 'DeleteObject' && (key === '' || key.startsWith(`${prefix}/`)),
    )
    .map(({ operation, key }) => (key === '' ? 'of the bucket' : operation));
  const counts = new Map<string, number>();
  for (const name of requests) counts.set(name, (counts.get(name) ?? 0) + 1);
  const prices = [...counts].map(([name, count]) =>
    name === 'of the bucket' ? count * putPrice : count * per * (gets.includes(name) ? getPrice : putPrice),
  );
  const described = [...counts].map(([name, count]) => `${count} ${name}`).join(', ');
  table.push(`${what} | ${described} | ${prices.reduce((sum, price) => sum + price, 0).toPrecision(2)}`);
  return requests.length;
}

describe('the requests to S3, and their price,', () => {
  it('of small intervals: two, and one more for a later export', async () => {
    const id = await createExport('small');
    const perThousand = { prefix: 'small', per: 1_000 / smallHours };
    let runs: RunResponse[] = [];
    const first = await measure('1,000 small intervals', perThousand, async () => {
      runs = await backfill(id, smallHours + 3, 3);
    });
    expect(first).toBe(2 * smallHours);
    const again = await measure('1,000 re-runs of small intervals', perThousand, async () => {
      for (const run of runs) {
        const { headers } = await stack.call('POST', `/batch_exports/${id}/runs/${run.id}/retry/`, {});
        const retried = headers.get('location')?.split('/').at(-2) ?? '';
        await stack.waitForRun(id, retried, 'Completed');
      }
    });
    expect(again).toBe(3 * smallHours);
    for (const deep of [false, true])
      await measure(`1,000 small intervals, verify${deep ? ' --deep' : ''}`, perThousand, async () =>
        expect((await verifyExport(stack, id, { deep })).findings).toEqual([]),
      );
  });

  it.each(formats)('of a million rows of $file_format, $compression', async (format) => {
    const id = await createExport(format.file_format, format);
    const name = `1,000,000 events, ${format.file_format} ${format.compression}`;
    let run: RunResponse | undefined;
    const count = await measure(name, { prefix: format.file_format }, async () => {
      [run] = await backfill(id, largeHour, largeHour - 1);
    });
    expect(run).toMatchObject({ records_completed: largeRows });
    expect(count).toBeLessThan(100);
    const { files } = await readManifest(stack.bucket, run?.manifest_key ?? '');
    // The files, one for each range that was read beside the others, and the manifest.
    expect(await keysUnder(stack.bucket, `${format.file_format}/`)).toHaveLength(files.length + 1);
    table.push(`${name} | ${files.map(({ bytes }) => bytes).join(', ')} bytes |`);
    await measure(`${name}, verify`, { prefix: format.file_format }, async () =>
      expect((await verifyExport(stack, id, { deep: false })).findings).toEqual([]),
    );
  });
});
