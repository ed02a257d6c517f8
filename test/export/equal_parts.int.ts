import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { casesOf } from '../setup/effort.ts';
import { withCrash, withInterruptions, type Interruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import {
  bytesSent,
  errorResponse,
  fileRequests,
  forgetTraits,
  knowTraits,
  requiringEqualParts,
  warningsOf,
} from './stores.ts';

const mebibyte = 1024 * 1024;
const hour = { start: '2026-01-01T10:00:00.000Z', end: '2026-01-01T11:00:00.000Z' };
let harness: ExportHarness;
let proxy: S3Proxy;
/** Four parts of JSON lines, three of gzip. */
const rows = 4_500;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(rows);
});
afterEach(async () => {
  proxy.stopIntercepting();
  await forgetTraits(harness);
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const createRun = (config: object = {}) =>
  harness.createRun({ config: { endpoint_url: proxy.endpoint, ...config } });

async function publishAndVerify(run_id: string, generation: number) {
  await harness.publishAndVerify(run_id, { generation });
  expect(await harness.reader.openUploads()).toEqual([]);
}

/** Sizes of the completed parts of a file, in order. */
function completedSizes(prefix: string): number[] {
  const requests = fileRequests(proxy, prefix);
  const completed = requests.findLast(
    ({ operation, status }) => operation === 'CompleteMultipartUpload' && status === 200,
  );
  const numbers = [...(completed?.text ?? '').matchAll(/<PartNumber>(\d+)</g)].map(([, number]) =>
    Number(number),
  );
  return numbers.map(
    (number) =>
      requests.find((part) => part.uploadId === completed?.uploadId && part.partNumber === number)
        ?.received ?? 0,
  );
}

const knowEqualParts = () => knowTraits(harness, proxy, { equal_parts: true });
const formats = [
  { file_format: 'JSONLines', compression: null },
  { file_format: 'JSONLines', compression: 'gzip' },
] as const;

describe('a store that requires parts of one size', () => {
  it('is found out with the first file, which is sent once more', async () => {
    proxy.intercept(requiringEqualParts(proxy.requests));
    const { run_id, batchExportId } = await createRun();
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'PartsRefused',
      nonRetryable: false,
    });
    expect(await warningsOf(harness, run_id)).toEqual([
      expect.stringMatching(/refuses parts of different sizes \(InvalidPart\).*with parts of one size/),
    ]);
    const { bytes } = await harness.attempt().exportInterval({ run_id });
    await publishAndVerify(run_id, 2);
    expect(bytesSent(proxy, batchExportId)).toBe(2 * bytes);
    const next = await createRun();
    await harness.attempt().exportInterval({ run_id: next.run_id });
    await publishAndVerify(next.run_id, 1);
    expect(bytesSent(proxy, next.batchExportId)).toBe(bytes);
  });

  it('that refuses these too fails the run at once, and says why', async () => {
    await knowEqualParts();
    proxy.intercept({
      before: ({ operation }) =>
        operation === 'CompleteMultipartUpload' ? errorResponse(400, 'InvalidPart') : undefined,
    });
    const { run_id } = await createRun();
    await expect(harness.attempt().exportInterval({ run_id })).rejects.toMatchObject({
      type: 'PartsRefused',
      nonRetryable: true,
      message: expect.stringMatching(/InvalidPart.*lists all \d+ parts/),
    });
  });

  /** Blocks that are concatenated, that are assembled into one stream, and row groups. */
  const assembled = [
    { file_format: 'JSONLines', compression: 'brotli' },
    { file_format: 'Parquet', compression: 'zstd' },
  ] as const;
  it.each(casesOf([formats[1], ...assembled], [...formats, ...assembled]))(
    'gets them for $file_format, $compression',
    async (config) => {
      await knowEqualParts();
      proxy.intercept(requiringEqualParts(proxy.requests));
      const { run_id, batchExportId } = await createRun(config);
      expect(await harness.attempt().exportInterval({ run_id })).toMatchObject({ rows, source_rows: rows });
      const sizes = completedSizes(batchExportId);
      expect(sizes.length).toBeGreaterThan(1);
      expect(sizes.slice(0, -1)).toEqual(sizes.slice(0, -1).map(() => 5 * mebibyte));
      expect(sizes.at(-1)).toBeLessThanOrEqual(5 * mebibyte);
      const { generation, ranges } = await harness.recorder.read(run_id);
      expect([generation, ranges[0]?.files.rows]).toEqual([1, rows]);
    },
  );
});

describe('an attempt that resumes parts of one size', () => {
  /** Where the attempt crashes, and whether it planned a part that ends inside a block and was not sent again. */
  const crashPoints: [keyof Interruptions, number, boolean][] = [
    ['planPart', 2, false],
    ['putPart', 2, false],
    ['arrived', 2, true],
    ['complete', 1, true],
  ];
  const crashes = formats.flatMap((format) =>
    crashPoints.map(([at, occurrence, keeps]) => ({ ...format, at, occurrence, keeps })),
  );
  const usualCrashes = crashes.filter(({ compression, at }) =>
    compression === null ? at === 'arrived' : at === 'planPart' || at === 'complete',
  );
  it.each(casesOf(usualCrashes, crashes))(
    'continues inside a block ($compression, $at $occurrence)',
    async ({ at, occurrence, keeps, ...config }) => {
      await knowEqualParts();
      proxy.intercept(requiringEqualParts(proxy.requests));
      const { run_id, batchExportId } = await createRun(config);
      const first = withCrash(harness, at, occurrence);
      await expect(harness.attempt(first).exportInterval({ run_id })).rejects.toThrow();
      const { ranges } = await harness.recorder.read(run_id);
      expect(ranges[0]?.upload?.parts.some(({ cut }) => cut !== undefined)).toBe(true);
      const second = withInterruptions(harness, {});
      const { bytes } = await harness.attempt(second).exportInterval({ run_id });
      await publishAndVerify(run_id, 1);
      const sentAgain = [...second.sent.values()].reduce((sum, size) => sum + size, 0);
      expect(keeps ? sentAgain : 0).toBeLessThan(bytes);
      expect([...second.sent.keys()].filter((number) => first.sent.has(number))).toEqual([]);
      expect(completedSizes(batchExportId).reduce((sum, size) => sum + size, 0)).toBe(bytes);
    },
  );

  it('continues in another execution', async () => {
    await knowEqualParts();
    proxy.intercept(requiringEqualParts(proxy.requests));
    const { run_id } = await createRun({ compression: 'gzip' });
    const settings = { ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 };
    let executions = 0;
    for (let finished = false; !finished; executions += 1)
      ({ finished } = await harness.attempt({ settings }).exportInterval({ run_id }));
    expect(executions).toBeGreaterThan(1);
    await publishAndVerify(run_id, 1);
  });
});

describe('a source that changes before the point where a file is resumed', () => {
  /** Deletes a row or adds one at a second of the hour, and undoes that. */
  const changes = {
    'a late row': (second: number) =>
      harness.database.pool.query(
        `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
         values (1, gen_random_uuid(), 'late', 'person', '{}', now(), $1::timestamptz + make_interval(secs => $2))`,
        [hour.start, second],
      ),
    'a deleted row': (second: number) =>
      harness.database.pool.query(
        `delete from events where uuid = (select uuid from events
           where inserted_at >= $1::timestamptz + make_interval(secs => $2) order by inserted_at, uuid limit 1)`,
        [hour.start, second],
      ),
  };
  const cases = (['a late row', 'a deleted row'] as const).flatMap((change) => [
    { store: 'of equal parts', equal: true, change },
    { store: 'of any parts', equal: false, change },
  ]);
  const usualCases = cases.filter(({ equal, change }) => equal === (change === 'a late row'));

  it.each(casesOf(usualCases, cases))(
    'is exported completely to a store $store ($change)',
    async ({ equal, change }) => {
      await knowTraits(harness, proxy, { equal_parts: equal });
      if (equal) proxy.intercept(requiringEqualParts(proxy.requests));
      const { run_id } = await createRun({ compression: 'gzip' });
      await expect(
        harness.attempt(withCrash(harness, 'arrived', 2)).exportInterval({ run_id }),
      ).rejects.toThrow();
      await changes[change](1);
      await harness.attempt().exportInterval({ run_id });
      const { generation } = await harness.recorder.read(run_id);
      await publishAndVerify(run_id, generation);
    },
  );

  it('starts the file anew when the block in which a part ends has changed', async () => {
    await knowEqualParts();
    proxy.intercept(requiringEqualParts(proxy.requests));
    const { run_id } = await createRun({ compression: 'gzip' });
    await expect(
      harness.attempt(withCrash(harness, 'arrived', 1)).exportInterval({ run_id }),
    ).rejects.toThrow();
    const { ranges } = await harness.recorder.read(run_id);
    const cut = ranges[0]?.upload?.parts.findLast((part) => part.cut !== undefined)?.cut;
    const second = (Date.parse(cut?.after?.inserted_at ?? '') - Date.parse(hour.start)) / 1_000;
    await changes['a late row'](second + 0.001);
    await harness.attempt().exportInterval({ run_id });
    // Only one generation was reserved after the first, and it has no late rows: the file itself started anew.
    const types = await harness.reader.eventTypes(run_id);
    expect(types.filter((type) => type === 'RunGenerationReserved')).toHaveLength(1);
    expect(await harness.recorder.read(run_id)).toMatchObject({ generation: 2, late_generations: 0 });
    await publishAndVerify(run_id, 2);
  });
});
