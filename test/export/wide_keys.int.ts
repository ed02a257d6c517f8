import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { GetObjectCommand } from '@aws-sdk/client-s3';
import type { Readable } from 'node:stream';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import { readRows } from '../../src/readers/read_rows.ts';
import fc from 'fast-check';
import type { RowBlock, Source } from '../../src/source/source.ts';
import { blocksOf, rowsOf, sourceOf } from '../source/rows.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { casesOf, randomCases } from '../setup/effort.ts';
import { type Interruptions, withCrash, withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness, interval } from './export_harness.ts';
import { forgetTraits, knowTraits, requiringEqualParts } from './stores.ts';

/** The rows of one key need five pages, and three parts when they are compressed. A third of them are equal. */
const distinctRows = 3_400;
const copies = 1_700;
const otherRows = 400;
const totalRows = distinctRows + copies + otherRows;
const pageBytes = 4_000_000;

describe('a key with more rows than a page holds', () => {
  let harness: ExportHarness;
  let proxy: S3Proxy;
  let source: Source;
  let sourceEvents: string[];
  /** So small that row groups end inside the key. */
  const memory = createMemoryBudget(pageBytes);
  const attempt = (more: Parameters<ExportHarness['attempt']>[0] = {}) =>
    harness.attempt({ source, memory, ...more });
  beforeAll(async () => {
    harness = await createExportHarness();
    proxy = await createS3Proxy(harness.bucket.endpoint);
    source = sourceOf(harness.database.url, { EXPORTD_SOURCE_PAGE_SIZE: pageBytes });
    await harness.insertEvents(otherRows);
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, '00000000-0000-4000-8000-000000000001', 'event ' || least(n, $3::int), 'person',
         jsonb_build_object('noise', noise), $1::timestamptz, $1::timestamptz + interval '20 minutes'
       from generate_series(1, $2::int) n cross join lateral (
         select string_agg(encode(sha512((least(n, $3::int) || ' ' || g)::bytea), 'hex'), '') as noise from generate_series(1, 30) g) r`,
      [interval.start, distinctRows + copies, distinctRows],
    );
    sourceEvents = await eventsOfSource();
  });
  afterAll(async () => {
    await source.close();
    await proxy.close();
    await harness.close();
  });

  const eventsOfSource = async (): Promise<string[]> =>
    (await harness.database.pool.query<{ event: string }>('select event from events')).rows
      .map(({ event }) => event)
      .sort();

  /** Publishes, and reads the names of all events in the files. */
  async function publishedEvents(run_id: string): Promise<string[]> {
    const { manifest_key } = await attempt().publishManifest({ run_id });
    const { files } = await harness.reader.manifestAt(manifest_key);
    const events: string[] = [];
    for (const file of files) {
      expect(Object.keys(file.last ?? {})).toEqual(['inserted_at', 'id']);
      const { Body } = await harness.bucket.client.send(
        new GetObjectCommand({ Bucket: harness.bucket.bucket, Key: file.key }),
      );
      const shape = { id: 'uuid', columns: [{ name: 'event', type: 'text' }] };
      for await (const { values } of readRows(file, Body as Readable, shape)) events.push(String(values[0]));
    }
    expect(await harness.reader.openUploads()).toEqual([]);
    return events.sort();
  }

  it('is read in blocks that no page exceeds', async () => {
    const blocks = await blocksOf(source, rangeOf('events'));
    expect(Math.max(...blocks.map(({ block }) => block.length))).toBeLessThanOrEqual(pageBytes);
    expect(blocks.reduce((sum, { rows }) => sum + rows, 0)).toBe(totalRows);
  });

  const rangeOf = (model: 'events' | 'persons') =>
    ({ model, team_id: 1, interval, selection: allRows }) as const;
  const textsOf = (blocks: readonly RowBlock[]): string[] =>
    blocks.flatMap(rowsOf).map((row) => JSON.stringify(row));

  it('is read between any two of its rows, also of persons', async () => {
    await harness.database.pool.query(`
      create view public.doubled_ids as select 1 as team_id, 'id ' || n % 3 as distinct_id, null::uuid as person_id,
        n / 9 as version, timestamptz '2026-01-01 10:00Z' + n % 3 * interval '1 minute' as updated_at, false as is_deleted
        from generate_series(1, 600) n;
      create view public.small_events as select team_id, uuid, event, distinct_id, timestamp, inserted_at, '{}'::jsonb as properties,
        '' as elements_chain, created_at, person_id, person_properties from public.events where event like 'event 1%5' or event like 'event 5000'`);
    const small = sourceOf(harness.database.url, {
      EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.doubled_ids',
      EXPORTD_EVENTS_RELATION: 'public.small_events',
      EXPORTD_SOURCE_PAGE_SIZE: 10_000,
    });
    for (const model of ['events', 'persons'] as const) {
      const whole = await blocksOf(small, rangeOf(model), { blockBytes: 3_000 });
      expect(whole.filter(({ last }) => last.within).length).toBeGreaterThan(5);
      const position = fc.integer({ min: 0, max: whole.length - 1 });
      await fc.assert(
        fc.asyncProperty(position, position, async (one, other) => {
          const [from, to] = [Math.min(one, other), Math.max(one, other)];
          const keys = { after: whole[from]?.last ?? null, until: whole[to]?.last ?? null };
          const between = await blocksOf(small, rangeOf(model), { ...keys, blockBytes: 5_000 });
          expect(textsOf(between)).toEqual(textsOf(whole.slice(from + 1, to + 1)));
        }),
        { numRuns: randomCases(10) },
      );
    }
    await small.close();
  });

  const formats = [
    { file_format: 'JSONLines', compression: 'gzip' },
    { file_format: 'CSV', compression: 'zstd' },
    { file_format: 'Parquet', compression: 'zstd' },
  ] as const;
  const crashPoints: [keyof Interruptions, number][] = [
    ['arrived', 1],
    ['putPart', 2],
    ['complete', 1],
  ];
  const crashes = crashPoints.flatMap(([at, occurrence]) =>
    formats.map((format) => ({ ...format, at, occurrence })),
  );
  it.each(casesOf(crashes.slice(0, 4), crashes))(
    'has each row once in $file_format after a crash ($at $occurrence)',
    async ({ at, occurrence, ...config }) => {
      const { run_id } = await harness.createRun({ config });
      const first = withCrash(harness, at, occurrence);
      await expect(attempt(first).exportInterval({ run_id })).rejects.toThrow();
      const { ranges } = await harness.recorder.read(run_id);
      expect(ranges[0]?.upload?.parts.some(({ last }) => last?.within)).toBe(true);
      const second = withInterruptions(harness, {});
      await attempt(second).exportInterval({ run_id });
      expect(await harness.recorder.read(run_id)).toMatchObject({ generation: 1 });
      expect(await publishedEvents(run_id)).toEqual(sourceEvents);
    },
  );

  it('is resumed inside a block where parts have one size', async () => {
    await knowTraits(harness, proxy, { equal_parts: true });
    const stop = proxy.intercept(requiringEqualParts(proxy.requests));
    const config = { endpoint_url: proxy.endpoint, compression: 'gzip' };
    const { run_id } = await harness.createRun({ config });
    await expect(attempt(withCrash(harness, 'arrived', 2)).exportInterval({ run_id })).rejects.toThrow();
    const { ranges } = await harness.recorder.read(run_id);
    expect(ranges[0]?.upload?.parts.some(({ cut }) => cut?.last.within)).toBe(true);
    await attempt().exportInterval({ run_id });
    expect(await harness.recorder.read(run_id)).toMatchObject({ generation: 1 });
    expect(await publishedEvents(run_id)).toEqual(sourceEvents);
    stop();
    await forgetTraits(harness);
  });

  it('is continued in the next file and in the next execution', async () => {
    const { run_id } = await harness.createRun({
      config: { max_file_size_mb: 5, compression: null },
    });
    const settings = { ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 };
    for (let finished = false; !finished;)
      ({ finished } = await attempt({ settings }).exportInterval({ run_id }));
    const { ranges } = await harness.recorder.read(run_id);
    expect(ranges[0]?.files.count).toBeGreaterThan(2);
    expect(await publishedEvents(run_id)).toEqual(sourceEvents);
  });

  it('has each row once if a row of the key arrives between two attempts', async () => {
    const { run_id } = await harness.createRun();
    await expect(attempt(withCrash(harness, 'arrived', 2)).exportInterval({ run_id })).rejects.toThrow();
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, uuid, 'late ' || n, distinct_id, '{}', timestamp, inserted_at from events, generate_series(1, 40) n
       where event = 'event 1' limit 40`,
    );
    await attempt().exportInterval({ run_id });
    expect(await publishedEvents(run_id)).toEqual(await eventsOfSource());
    await harness.database.pool.query(`delete from events where event like 'late %'`);
  });
});
