import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { takenOverWorkers } from '../setup/patience.ts';
import { until } from '../setup/until.ts';
import { killPoints, type Held, type KillPoint } from './kill_points.ts';
import { insertLargeEvents } from './large_rows.ts';
import { watchManifests, type ManifestWatch } from './manifest_watch.ts';
import { holdRequests } from './request_hold.ts';
import { keysUnder, readManifest } from './rows.ts';
import { openUploads } from './run_evidence.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type ShownRun, type Stack } from './stack.ts';
import { verified } from './verified.ts';

/** Enough for a part and a half in every format. */
const rows = 1_700;
const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };

const everyPoint = Object.keys(killPoints) as KillPoint[];
/** Where a file is gone on with or its end is found again, which depends on the format. */
const pointsOfFiles: readonly KillPoint[] = ['in a part', 'between parts', 'after the last part'];
const formats = [
  { format: { file_format: 'JSONLines', compression: 'gzip' }, points: everyPoint },
  { format: { file_format: 'CSV', compression: 'zstd' }, points: ['in a part', 'after the last part'] },
  { format: { file_format: 'Parquet', compression: 'zstd' }, points: pointsOfFiles },
] as const;

/** A run that is killed somewhere; its export has a prefix of its own. */
interface Killed {
  readonly name: string;
  readonly format: (typeof formats)[number]['format'];
  readonly point: KillPoint;
  readonly prefix: string;
}

const cases: readonly Killed[] = formats.flatMap(({ format, points }) =>
  points.map((point) => {
    const name = `${format.file_format}, ${point}`;
    return { name, format, point, prefix: name.toLowerCase().replaceAll(/[^a-z]+/g, '-') };
  }),
);

describe('SIGKILL of the worker', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  let watch: ManifestWatch | undefined;
  const holds: Held[] = [];
  /** How many requests had come when the worker was killed. */
  let killedAt = 0;
  const ended = new Map<string, { exportId: string; run: ShownRun }>();

  async function firstGeneration({ format, prefix }: Killed): Promise<{ exportId: string; first: ShownRun }> {
    const exportId = await stack.createExport({}, { ...format, prefix });
    await stack.call('POST', `/batch_exports/${exportId}/backfill/`, range);
    const [run] = await stack.runs(exportId);
    return { exportId, first: await stack.runIn(exportId, run?.id ?? '', 'Completed') };
  }

  async function startAgain(exportId: string, first: ShownRun): Promise<string> {
    const { headers } = await stack.call('POST', `/batch_exports/${exportId}/runs/${first.id}/retry/`, {});
    return headers.get('location')?.split('/').at(-2) ?? '';
  }

  /** All at once: each has an export of its own, whose second run stands still at its point when the worker dies. */
  beforeAll(async () => {
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'kill',
      {
        EXPORTD_EXPORT_SLOTS: String(cases.length),
        ...takenOverWorkers,
        // Longer than it takes until the last one stands still: none of the others may give up and try again.
        EXPORTD_S3_REQUEST_TIMEOUT: '3m',
        EXPORTD_CONTROL_STATEMENT_TIMEOUT: '3m',
        // As often as it gets: what is swept has to be what nobody needs.
        EXPORTD_MAINTENANCE_INTERVAL: '500ms',
        EXPORTD_ORPHAN_RETENTION: '500ms',
        EXPORTD_OLD_GENERATION_RETENTION: '2s',
        // Two row groups of Parquet, each of them a part.
        EXPORTD_SOURCE_PAGE_SIZE: '8000000B',
      },
      { bucket: { ...bucket, endpoint: proxy.endpoint } },
    );
    await insertLargeEvents(stack, hourAgo(3), rows);
    const before = await Promise.all(cases.map(firstGeneration));
    watch = watchManifests(
      bucket,
      before.map(({ first }) => first.manifest_key ?? ''),
    );

    const start = holdRequests(proxy, 'the second runs begin', {
      when: 'before',
      matches: ({ operation }) => operation === 'CreateMultipartUpload',
    });
    const runs = await Promise.all(before.map(({ exportId, first }) => startAgain(exportId, first)));
    for (const [index, { point, prefix }] of cases.entries())
      holds.push(await killPoints[point]({ proxy, stack }, { id: runs[index] ?? '', prefix }));
    await until(() => start.held.length === cases.length, 'every second run has begun');
    start.release();
    await Promise.all(holds.map((hold) => hold.reached()));
    const underWay = () => proxy.requests.filter((request) => !request.ended).length;
    const standing = () => holds.reduce((sum, hold) => sum + hold.requests(), 0);
    await until(() => underWay() === standing(), 'nothing else is under way');

    await stack.killWorker();
    killedAt = proxy.requests.length;
    await watch.readAll();
    for (const hold of holds) await hold.cut();
    await stack.startWorker();
    for (const [index, { name }] of cases.entries()) {
      const exportId = before[index]?.exportId ?? '';
      const run = await stack.runIn(exportId, runs[index] ?? '', 'Completed');
      ended.set(name, { exportId, run });
    }
    await watch.readAll();
  });
  afterAll(async () => {
    await watch?.stop();
    for (const hold of holds) await hold.cut();
    await stack.stop();
    await proxy.close();
  });

  const endOf = ({ name }: Killed) => {
    const found = ended.get(name);
    if (!found) throw new Error(`Nothing was killed: ${name}.`);
    return found;
  };

  it.each(cases)('$name: the run ends Completed, nothing is lost or doubled', async (one) => {
    const { exportId, run } = endOf(one);
    expect(run).toMatchObject({ records_completed: rows, records_total_count: rows, generation: 2 });
    const manifest = await readManifest(stack.bucket, run.manifest_key ?? '');
    expect(manifest).toMatchObject({ run_id: run.id, generation: 2, rows });
    const report = await verified(stack, exportId);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });

  it.each(cases)('$name: what had arrived is not sent again', ({ prefix }) => {
    const sent = (from: number, to?: number) =>
      proxy.requests
        .slice(from, to)
        .filter(
          ({ operation, key }) =>
            operation === 'UploadPart' && key.startsWith(`${prefix}/`) && key.includes('-g2.'),
        );
    const confirmed = confirmedOf(sent(0, killedAt));
    const [completed] = proxy.requests.filter(
      ({ operation, status, key }) =>
        operation === 'CompleteMultipartUpload' &&
        status === 200 &&
        key.startsWith(`${prefix}/`) &&
        key.includes('-g2.'),
    );
    const joined = [...(completed?.text ?? '').matchAll(/<PartNumber>(\d+)</g)].map(([, number]) =>
      Number(number),
    );
    expect(joined.slice(0, confirmed.length)).toEqual(confirmed.map(({ partNumber }) => partNumber));
    const again = sent(killedAt);
    expect(again.map(({ partNumber }) => partNumber)).toEqual(joined.slice(confirmed.length));
    const arrived = new Set(confirmed.map(({ digest }) => digest));
    expect(again.filter(({ digest }) => arrived.has(digest))).toEqual([]);
  });

  it.each(cases.filter(({ point }) => point.includes('while')))(
    '$name: the request that was on its way has arrived',
    ({ prefix }) => {
      const last = proxy.requests.slice(0, killedAt).findLast(({ key }) => key.startsWith(`${prefix}/`));
      expect(last).toMatchObject({ status: 200, ended: true });
    },
  );

  it.each(cases)('$name: the generation before stays whole until the new one is there', (one) => {
    expect(watch?.rounds()).toBeGreaterThan(10);
    expect(watch?.complaints(endOf(one).run.manifest_key ?? '')).toEqual([]);
  });

  it.each(cases)('$name: what nobody needs is swept', async (one) => {
    const { prefix } = one;
    const { run } = endOf(one);
    const { files } = await readManifest(stack.bucket, run.manifest_key ?? '');
    const needed = [...files.map(({ key }) => key), run.manifest_key ?? ''].sort();
    let left: unknown;
    await until(
      async () => {
        const keys = await keysUnder(stack.bucket, `${prefix}/`);
        left = [keys.sort(), await openUploads(stack, prefix)];
        return isDeepStrictEqual(left, [needed, 0]);
      },
      () => `the objects of the generation before and every upload are gone, not: ${JSON.stringify(left)}`,
    );
  });
});

/** The parts that had arrived, in their order up to the first that had not. */
function confirmedOf(parts: readonly ProxiedRequest[]): ProxiedRequest[] {
  const inOrder = parts.toSorted((one, other) => (one.partNumber ?? 0) - (other.partNumber ?? 0));
  const missing = inOrder.findIndex(({ status }) => status !== 200);
  return missing === -1 ? inOrder : inOrder.slice(0, missing);
}
