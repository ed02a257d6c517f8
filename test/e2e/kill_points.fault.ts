import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { casesOf } from '../setup/effort.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  killPoints,
  tableKillPoints,
  smallKillPoints,
  tableLog,
  type KillPoint,
  type KillPointGate,
  type KillPointGateFactory,
  type TableKillPoint,
  type SmallKillPoint,
} from './kill_points.ts';
import { insertLargeEvents } from './large_events.ts';
import { watchManifests, type ManifestWatch } from './manifest_watch.ts';
import { blockRequests } from './request_gate.ts';
import { insertEvents, keysUnder, readManifest, sourceUuids } from './rows.ts';
import { openUploads } from './run_views.ts';
import { hourAgo } from '../setup/hours.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** About one and a half parts in every format. */
const large = {
  rows: 1_700,
  range: { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() },
};
/** A file of one part, which is one request. */
const small = {
  rows: 40,
  range: { start_at: hourAgo(6).toISOString(), end_at: hourAgo(5).toISOString() },
};

const allKillPoints = Object.keys(killPoints) as KillPoint[];
/** A part, a claim and a delayed request: what needs a process that dies. test/export/resume.int.ts resumes at the others. */
const usualKillPoints: readonly KillPoint[] = [
  'in a part',
  'after the claim, before the manifest',
  'while the manifest is written',
];
/** The points at which a file is resumed, which depends on the format. */
const fileKillPoints: readonly KillPoint[] = ['in a part', 'between parts', 'after the last part'];
const formats = [
  {
    format: { file_format: 'JSONLines', compression: 'gzip' },
    points: casesOf(usualKillPoints, allKillPoints),
  },
  {
    format: { file_format: 'CSV', compression: 'zstd' },
    points: casesOf<KillPoint>([], ['in a part', 'after the last part']),
  },
  {
    format: { file_format: 'Parquet', compression: 'zstd' },
    points: casesOf<KillPoint>(['between parts'], fileKillPoints),
  },
] as const;

/** A run whose worker is killed at a point; its export has a separate prefix. */
interface KillCase {
  readonly name: string;
  readonly format: object;
  readonly point: string;
  readonly createGate: KillPointGateFactory;
  readonly interval: typeof large;
  /** The generation of the second run: a small file that has not arrived starts over. */
  readonly generation: number;
  readonly prefix: string;
}

const prefixOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]+/g, '-');

const largeCases: readonly KillCase[] = formats.flatMap(({ format, points }) =>
  points.map((point) => {
    const name = `${format.file_format}, ${point}`;
    const createGate = killPoints[point];
    return { name, format, point, createGate, interval: large, generation: 2, prefix: prefixOf(name) };
  }),
);
const smallCases: readonly KillCase[] = (Object.keys(smallKillPoints) as SmallKillPoint[]).map((point) => {
  const name = `a small interval, ${point}`;
  return {
    name,
    format: { file_format: 'JSONLines', compression: 'gzip' },
    point,
    createGate: smallKillPoints[point],
    interval: small,
    generation: 3,
    prefix: prefixOf(name),
  };
});
const tableCases: readonly KillCase[] = (Object.keys(tableKillPoints) as TableKillPoint[]).map((point) => {
  const name = `a table, ${point}`;
  const format = {
    file_format: 'Parquet',
    compression: 'zstd',
    table_format: 'delta',
    partition_by: ['date', 'hour'],
  };
  const createGate = tableKillPoints[point];
  return { name, format, point, createGate, interval: large, generation: 2, prefix: prefixOf(name) };
});
const cases = [...largeCases, ...smallCases, ...tableCases];

describe('SIGKILL of the worker', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  let watch: ManifestWatch | undefined;
  const gates: KillPointGate[] = [];
  /** The number of requests received before the worker was killed. */
  let requestsBeforeKill = 0;
  const completedRuns = new Map<string, { exportId: string; run: RunResponse }>();

  async function exportFirstGeneration({
    format,
    prefix,
    interval: { range },
  }: KillCase): Promise<{ exportId: string; first: RunResponse }> {
    const exportId = await stack.createExport({}, { ...format, prefix });
    await stack.call('POST', `/batch_exports/${exportId}/backfill/`, range);
    // Under load, the response comes before the run.
    const run = await waitFor(
      async () => (await stack.runs(exportId)).at(0),
      () => `the backfill creates a run below ${prefix}`,
    );
    return { exportId, first: await stack.waitForRun(exportId, run.id, 'Completed') };
  }

  async function retryRun(exportId: string, first: RunResponse): Promise<string> {
    const { headers } = await stack.call('POST', `/batch_exports/${exportId}/runs/${first.id}/retry/`, {});
    return headers.get('location')?.split('/').at(-2) ?? '';
  }

  /** Runs all cases concurrently: each has an export whose second run is blocked at its point when the worker is killed. */
  beforeAll(async () => {
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'kill',
      {
        // Every run keeps its slot and its rows in memory until the worker is killed. Short memory would make parts smaller.
        EXPORTD_EXPORT_SLOTS: String(cases.length),
        EXPORTD_MEMORY_BUDGET: '512MiB',
        ...failoverWorkers,
        // Longer than it takes until the last run is blocked, so that no blocked run times out and retries.
        EXPORTD_S3_REQUEST_TIMEOUT: '3m',
        EXPORTD_CONTROL_STATEMENT_TIMEOUT: '3m',
        // As often as possible, to catch the deletion of objects that are still needed.
        EXPORTD_MAINTENANCE_INTERVAL: '500ms',
        EXPORTD_ORPHAN_RETENTION: '500ms',
        EXPORTD_OLD_GENERATION_RETENTION: '2s',
        EXPORTD_TABLE_FILE_RETENTION: '2s',
        // Two Parquet row groups, each of one part.
        EXPORTD_SOURCE_PAGE_SIZE: '8000000B',
      },
      { bucket: { ...bucket, endpoint: proxy.endpoint } },
    );
    await insertLargeEvents(stack, hourAgo(3), large.rows);
    await insertEvents(stack.pool, stack.projectId, hourAgo(6), small.rows);
    const before = await Promise.all(cases.map(exportFirstGeneration));
    watch = watchManifests(
      bucket,
      before.map(({ first }) => first.manifest_key ?? ''),
    );

    const start = blockRequests(proxy, 'the start of the second runs', {
      when: 'before',
      matches: ({ operation, key }) =>
        operation === 'CreateMultipartUpload' || (operation === 'PutObject' && key.includes('-g2.')),
    });
    const runs = await Promise.all(before.map(({ exportId, first }) => retryRun(exportId, first)));
    for (const [index, { createGate, prefix }] of cases.entries())
      gates.push(await createGate({ proxy, stack }, { id: runs[index] ?? '', prefix }));
    await waitFor(() => start.waiting.length === cases.length, 'every second run has started');
    start.open();
    await Promise.all(gates.map((gate) => gate.reached()));
    const pendingRequests = () => proxy.requests.filter((request) => !request.ended).length;
    const blockedRequests = () => gates.reduce((sum, gate) => sum + gate.requests(), 0);
    await waitFor(() => pendingRequests() === blockedRequests(), 'no other request is pending');

    await stack.killWorker();
    requestsBeforeKill = proxy.requests.length;
    await watch.readAll();
    for (const gate of gates) await gate.discard();
    await stack.startWorker();
    for (const [index, { name }] of cases.entries()) {
      const exportId = before[index]?.exportId ?? '';
      const run = await stack.waitForRun(exportId, runs[index] ?? '', 'Completed');
      completedRuns.set(name, { exportId, run });
    }
    await watch.readAll();
  });
  afterAll(async () => {
    await watch?.stop();
    for (const gate of gates) await gate.discard();
    await stack.stop();
    await proxy.close();
  });

  const completedRunOf = ({ name }: KillCase) => {
    const found = completedRuns.get(name);
    if (!found) throw new Error(`No run of this case completed: ${name}.`);
    return found;
  };

  it.each(cases)('$name: the run completes without missing or duplicate rows', async (killCase) => {
    const { exportId, run } = completedRunOf(killCase);
    const { generation, interval } = killCase;
    const { rows } = interval;
    expect(run).toMatchObject({ records_completed: rows, records_total_count: rows, generation });
    const manifest = await readManifest(stack.bucket, run.manifest_key ?? '');
    expect(manifest).toMatchObject({ run_id: run.id, generation, rows });
    const report = await verifyExport(stack, exportId);
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });

  it.each(tableCases)('$name: the table has each row once', async (killCase) => {
    const { prefix, interval } = killCase;
    const { exportId } = completedRunOf(killCase);
    const table = createDeltaReader(stack.bucket, prefix);
    const { start_at, end_at } = interval.range;
    expect((await table.rows()).map(({ uuid }) => String(uuid)).sort()).toEqual(
      await sourceUuids(stack.pool, stack.projectId, start_at, end_at),
    );
    expect(await table.live()).toHaveProperty('size', 1);
    expect(await table.versions()).toEqual([0, 1]);
    const { body } = await stack.call('POST', `/batch_exports/${exportId}/table/check/`, {});
    expect(body).toMatchObject({ ok: true, version: 1, findings: [] });
  });

  it.each([...largeCases, ...tableCases])('$name: confirmed parts are not sent again', ({ prefix }) => {
    const sent = (from: number, to?: number) =>
      proxy.requests
        .slice(from, to)
        .filter(
          ({ operation, key }) =>
            operation === 'UploadPart' && key.startsWith(`${prefix}/`) && key.includes('-g2.'),
        );
    const confirmed = confirmedOf(sent(0, requestsBeforeKill));
    const [completed] = proxy.requests.filter(
      ({ operation, status, key }) =>
        operation === 'CompleteMultipartUpload' &&
        status === 200 &&
        key.startsWith(`${prefix}/`) &&
        key.includes('-g2.'),
    );
    const completedPartNumbers = [...(completed?.text ?? '').matchAll(/<PartNumber>(\d+)</g)].map(
      ([, number]) => Number(number),
    );
    expect(completedPartNumbers.slice(0, confirmed.length)).toEqual(
      confirmed.map(({ partNumber }) => partNumber),
    );
    const sentAfterKill = sent(requestsBeforeKill);
    expect(sentAfterKill.map(({ partNumber }) => partNumber)).toEqual(
      completedPartNumbers.slice(confirmed.length),
    );
    const confirmedDigests = new Set(confirmed.map(({ digest }) => digest));
    expect(sentAfterKill.filter(({ digest }) => confirmedDigests.has(digest))).toEqual([]);
  });

  it.each(cases.filter(({ point }) => point.includes('while')))(
    '$name: the delayed request arrived',
    ({ prefix }) => {
      const last = proxy.requests
        .slice(0, requestsBeforeKill)
        .findLast(({ key }) => key.startsWith(`${prefix}/`));
      expect(last).toMatchObject({ status: 200, ended: true });
    },
  );

  it.each(cases)(
    '$name: the previous generation stays complete until the new one is published',
    (killCase) => {
      expect(watch?.rounds()).toBeGreaterThan(10);
      expect(watch?.problems(completedRunOf(killCase).run.manifest_key ?? '')).toEqual([]);
    },
  );

  it.each(cases)('$name: obsolete objects and uploads are deleted', async (killCase) => {
    const { prefix } = killCase;
    const { run } = completedRunOf(killCase);
    const { files } = await readManifest(stack.bucket, run.manifest_key ?? '');
    const needed = [...files.map(({ key }) => key), run.manifest_key ?? ''].sort();
    let remaining: unknown;
    await waitFor(
      async () => {
        const keys = await keysUnder(stack.bucket, `${prefix}/`);
        remaining = [keys.filter((key) => !key.includes(tableLog)).sort(), await openUploads(stack, prefix)];
        return isDeepStrictEqual(remaining, [needed, 0]);
      },
      () =>
        `the previous generation's objects and all uploads are deleted; remaining: ${JSON.stringify(remaining)}`,
    );
  });
});

/** The confirmed parts in order, up to the first part that was not confirmed. */
function confirmedOf(parts: readonly ProxiedRequest[]): ProxiedRequest[] {
  const inOrder = parts.toSorted((killCase, other) => (killCase.partNumber ?? 0) - (other.partNumber ?? 0));
  const missing = inOrder.findIndex(({ status }) => status !== 200);
  return missing === -1 ? inOrder : inOrder.slice(0, missing);
}
