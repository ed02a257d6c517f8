import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { ExportActivities } from '../../activities/run.ts';
import { continueRun } from '../../src/decisions/continue_run.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import { addFingerprints, haveSameRows, rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { filesOf, finishedOf } from '../../src/domain/run_state.ts';
import { countRows } from '../../src/export/count.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { casesOf, randomCases } from '../setup/effort.ts';
import { type Interruptions, withCrash, withInterruptions } from './crash_injection.ts';
import { createExportHarness, type ExportHarness, insertEvents, interval } from './export_harness.ts';

describe('fingerprints', () => {
  let harness: ExportHarness;
  beforeAll(async () => {
    harness = await createExportHarness();
  });
  afterAll(() => harness.close());

  /** An hour that no other test case uses. */
  let hours = 0;
  const nextHour = () => {
    const start = Date.UTC(2026, 1, 1, hours++);
    return { start: new Date(start).toISOString(), end: new Date(start + 3_600_000).toISOString() };
  };
  type Hour = ReturnType<typeof nextHour>;
  const sourceRows = (interval: Hour, model: Model = 'events') =>
    harness.source.fingerprint({ model, team_id: 1, interval, selection: allRows });

  /** Counts the rows of a run, as its workflow does before the export. */
  const count = (run_id: string, EXPORTD_RANGE_ROWS = 1_000) =>
    countRows(
      { ...harness, settings: { ...harness.settings, EXPORTD_RANGE_ROWS } },
      { run_id, settled: true, blocked_by: [] },
      new AbortController().signal,
    );

  /** Publishes and expects the manifest to have the rows that the source has now. */
  async function expectSameRows(run_id: string, of: Hour, model: Model = 'events') {
    const { manifest_key } = await harness.attempt().publishManifest({ run_id });
    const manifest = await harness.reader.manifestAt(manifest_key);
    const rejected = manifest.rejected_file ? [manifest.rejected_file.fingerprint] : [];
    const [first, ...others] = [...manifest.files.map(({ fingerprint }) => fingerprint), ...rejected];
    if (!first) throw new Error('The manifest has no file.');
    expect(addFingerprints(first, ...others)).toEqual(manifest.fingerprint);
    for (const file of manifest.files) expect(rowsOfFingerprint(file.fingerprint)).toBe(file.rows);
    expect(rowsOfFingerprint(manifest.fingerprint)).toBe(manifest.rows + manifest.rejected);
    expect(manifest.fingerprint).toEqual(await sourceRows(of, model));
    return manifest;
  }

  /** An event: its second of the hour, which uuid it has, and whether Parquet cannot represent it. */
  const eventArb = fc.record({
    second: fc.oneof(fc.constant(1_800), fc.nat({ max: 3_599 })),
    id: fc.nat({ max: 40 }),
    infinite: fc.integer({ min: 0, max: 9 }).map((tenth) => tenth === 0),
  });
  const insertRandomEvents = (
    events: readonly { second: number; id: number; infinite: boolean }[],
    of: Hour,
  ) =>
    harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     select 1, md5(($1::jsonb -> n ->> 'id') || $2)::uuid, 'event', 'person',
       case when ($1::jsonb -> n ->> 'infinite')::boolean then 'infinity' else at end, at
     from generate_series(0, jsonb_array_length($1::jsonb) - 1) n,
       lateral (select $2::timestamptz + ($1::jsonb -> n ->> 'second')::int * interval '1 second' as at) times`,
      [JSON.stringify(events), of.start],
    );

  describe('the fingerprint of the written rows', () => {
    it('is that of the source, with doubled uuids, rejected rows, ranges and attempts that crashed', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(eventArb, { minLength: 1, maxLength: 80 }),
          fc.constantFrom('JSONLines', 'CSV', 'Parquet'),
          fc.constantFrom(1_000, 20, 3),
          fc.constantFrom(null, 'planPart', 'complete', 'completed', 'putFile', 'written'),
          async (events, file_format, EXPORTD_RANGE_ROWS, crashPoint) => {
            const of = nextHour();
            await insertRandomEvents(events, of);
            const { run_id } = await harness.createRun({
              of,
              config: { on_bad_row: 'reject', file_format, compression: null },
            });
            const { ranges } = await count(run_id, EXPORTD_RANGE_ROWS);
            expect((await harness.recorder.read(run_id)).source_fingerprint).toEqual(await sourceRows(of));
            const crashing = crashPoint
              ? [harness.attempt(withCrash(harness, crashPoint)), harness.attempt()]
              : [];
            for (const activities of [...crashing, harness.attempt()])
              for (let range = 0; range < ranges; range += 1)
                await activities.exportRange({ run_id, range }).catch(() => undefined);
            expect(await harness.attempt().finishExport({ run_id })).toMatchObject({ finished: true });
            await expectSameRows(run_id, of);
          },
        ),
        { numRuns: randomCases(4) },
      );
    });

    it('is that of the source for persons, by distinct id', async () => {
      const of = nextHour();
      await harness.database.pool.query(
        `insert into public.persons (team_id, id, updated_at)
         select 1, md5('person ' || n)::uuid, $1::timestamptz + n * interval '4 minutes' from generate_series(0, 9) n`,
        [of.start],
      );
      await harness.database.pool.query(
        `insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
         select 1, repeat('ü', n) || n, md5('person ' || n % 12)::uuid, $1::timestamptz + n * interval '31 seconds'
         from generate_series(0, 99) n`,
        [of.start],
      );
      const { run_id } = await harness.createRun({ of, model: 'persons' });
      await harness.attempt().exportInterval({ run_id });
      const { rows } = await expectSameRows(run_id, of, 'persons');
      expect(rows).toBe(100);
    });
  });

  describe('a run', () => {
    /** Changes rows of the source after the run has read them; once, or in every generation. */
    const withChange = (change: () => Promise<unknown>, times: number) => {
      let left = times;
      const apply = async () => {
        if (left-- > 0) await change();
      };
      return withInterruptions(harness, { complete: apply, putFile: apply });
    };
    /** Deletes a row and inserts another one at the same time. */
    const exchangeRow = (of: Hour) =>
      harness.database.pool.query(
        `with deleted as (delete from events where uuid = (select uuid from events
         where inserted_at >= $1 and inserted_at < $2 limit 1) returning inserted_at)
       insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
       select 1, $3, 'late', 'person', inserted_at, inserted_at from deleted`,
        [of.start, of.end, randomUUID()],
      );
    const insertRows = (of: Hour, distinct_id: string) =>
      harness.database.pool.query(
        `insert into events (team_id, uuid, event, distinct_id, person_id, timestamp, inserted_at)
       select 1, gen_random_uuid(), 'event', $2, md5($2)::uuid, at, at
       from generate_series(1, 20) n, lateral (select $1::timestamptz + n * interval '2 minutes' as at) times`,
        [of.start, distinct_id],
      );

    it('exports again if one row was deleted and another arrived in the same bucket', async () => {
      const of = nextHour();
      await insertRows(of, 'd');
      const { run_id } = await harness.createRun({ of });
      const exported = await harness.attempt(withChange(() => exchangeRow(of), 1)).exportInterval({ run_id });
      expect(exported).toMatchObject({ finished: true, generation: 2, rows: 20 });
      await expectSameRows(run_id, of);
    });

    it('exports again if a person arrived late, and not if one has moved to a later interval', async () => {
      const of = nextHour();
      const insert = (id: string) =>
        harness.database.pool.query(
          `with person as (insert into public.persons (team_id, id, updated_at) values (1, md5($2)::uuid, $1) returning id)
           insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
           select 1, $2, id, $1 from person`,
          [of.start, id],
        );
      const move = (id: string) =>
        harness.database.pool.query('update public.persons set updated_at = $1 where id = md5($2)::uuid', [
          of.end,
          id,
        ]);
      for (const id of ['stays', 'moves']) await insert(`${id} ${of.start}`);
      const first = await harness.createRun({ of, model: 'persons' });
      const moving = withChange(() => move(`moves ${of.start}`), 1);
      expect(await harness.attempt(moving).exportInterval(first)).toMatchObject({ generation: 1, rows: 2 });
      const second = await harness.createRun({ of, model: 'persons' });
      const arriving = withChange(() => insert(`arrives ${of.start}`), 1);
      expect(await harness.attempt(arriving).exportInterval(second)).toMatchObject({
        generation: 2,
        rows: 2,
      });
      await expectSameRows(second.run_id, of, 'persons');
    });

    it('publishes what it wrote, not what the source has, if rows keep changing', async () => {
      const of = nextHour();
      await insertRows(of, 'd');
      const { run_id } = await harness.createRun({ of });
      const exported = await harness.attempt(withChange(() => exchangeRow(of), 9)).exportInterval({ run_id });
      expect(exported).toMatchObject({ finished: true, generation: 3, rows: 20 });
      const run = await harness.recorder.read(run_id);
      const { manifest_key } = await harness.attempt().publishManifest({ run_id });
      const { fingerprint } = await harness.reader.manifestAt(manifest_key);
      const now = await sourceRows(of);
      expect(fingerprint).toEqual(filesOf(run).fingerprint);
      expect(finishedOf(run)?.fingerprint).toEqual(now);
      expect(haveSameRows(fingerprint, now)).toBe(false);
    });

    describe('of events that persons select', () => {
      const query = `select uuid, event from events where person.properties.plan = 'pro'`;
      const setPlan = (distinct_id: string, plan: string) =>
        harness.database.pool.query(
          `insert into public.persons (team_id, id, properties) values (1, md5($1)::uuid, jsonb_build_object('plan', $2::text))
         on conflict (team_id, id) do update set properties = excluded.properties`,
          [distinct_id, plan],
        );

      it('is not exported again if only a person changed, and compares all events of the project', async () => {
        const of = nextHour();
        const person = `person of ${of.start}`;
        await insertRows(of, person);
        await insertRows(of, 'somebody else');
        await setPlan(person, 'pro');
        const { run_id } = await harness.createRun({ of, query });
        await count(run_id);
        const changing = withChange(() => setPlan(person, 'free'), 1);
        const exported = await harness.attempt(changing).exportInterval({ run_id });
        expect(exported).toMatchObject({ finished: true, generation: 1, rows: 20 });
        const { manifest_key } = await harness.attempt().publishManifest({ run_id });
        const manifest = await harness.reader.manifestAt(manifest_key);
        const all = await sourceRows(of);
        expect(rowsOfFingerprint(all)).toBe(40);
        expect(manifest).toMatchObject({
          rows: 20,
          source_rows: 20,
          fingerprint: { ...all, all_events: true },
        });
      });

      it('is exported again if an event arrived, and reports all events that it has seen', async () => {
        const of = nextHour();
        const person = `person of ${of.start}`;
        await insertRows(of, person);
        await setPlan(person, 'pro');
        const { run_id } = await harness.createRun({ of, query });
        await count(run_id);
        const changing = withChange(() => exchangeRow(of), 1);
        const exported = await harness.attempt(changing).exportInterval({ run_id });
        expect(exported).toMatchObject({ finished: true, generation: 2, rows: 19 });
        const { manifest_key } = await harness.attempt().publishManifest({ run_id });
        const { fingerprint } = await harness.reader.manifestAt(manifest_key);
        expect(fingerprint).toEqual({ ...(await sourceRows(of)), all_events: true });
      });
    });
  });
});

describe('files and ranges', () => {
  let harness: ExportHarness;
  /** Three files, and three ranges of two parts. */
  const eventCount = 4_200;
  const config = { max_file_size_mb: 6 };
  beforeAll(async () => {
    harness = await createExportHarness();
    await harness.insertEvents(eventCount);
  });
  afterAll(() => harness.close());

  /** Publishes, and checks that the files do not overlap. */
  async function publishAndVerify(runId: string, generation = 1) {
    const manifest = await harness.publishAndVerify(runId, { generation });
    expect(await harness.reader.openUploads()).toEqual([]);
    const keys = manifest.files.flatMap(({ first, last }) => [first, last].map((key) => JSON.stringify(key)));
    expect(keys.toSorted()).toEqual(keys);
    expect(new Set(manifest.files.map(({ key }) => key)).size).toBe(manifest.files.length);
    return manifest;
  }

  describe('an export with a maximum file size', () => {
    it('starts the next file after the block that reaches it', async () => {
      const { run_id } = await harness.createRun({ config });
      await harness.attempt().exportInterval({ run_id });
      const { files } = await publishAndVerify(run_id);
      expect(files.length).toBeGreaterThan(2);
      const sizes = files.map(({ bytes }) => bytes);
      for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThanOrEqual(6 * 1024 * 1024);
      for (const size of sizes) expect(size).toBeLessThan(12 * 1024 * 1024);
      expect(files.map(({ key }) => /-(\d+)\.jsonl$/.exec(key)?.[1])).toEqual(
        files.map((_, number) => String(number)),
      );
    });

    const crashPoints: [keyof Interruptions, number][] = [
      ['planPart', 1],
      ['planPart', 3],
      ['arrived', 2],
      ['complete', 1],
      ['completed', 1],
      ['complete', 2],
      ['completed', 2],
    ];
    /** Inside a file, at its end, and at the end of a later one. */
    const usualCrashPoints = crashPoints.filter(([at, occurrence]) =>
      at === 'planPart'
        ? occurrence === 3
        : at === 'complete'
          ? occurrence === 2
          : at === 'completed' && occurrence === 1,
    );
    it.each(casesOf(usualCrashPoints, crashPoints))(
      'resumes the file in which it crashed (%s %i)',
      async (at, occurrence) => {
        const { run_id } = await harness.createRun({ config });
        const first = withCrash(harness, at, occurrence);
        await expect(harness.attempt(first).exportInterval({ run_id })).rejects.toThrow();
        const before = await harness.recorder.readFiles(run_id, await harness.recorder.read(run_id));
        await harness.attempt().exportInterval({ run_id });
        const { files } = await publishAndVerify(run_id);
        // Files that were complete before are unchanged.
        expect(files.slice(0, before.length)).toMatchObject(before.map(({ key, crc32 }) => ({ key, crc32 })));
      },
    );

    it('starts a lost file over under the next number and keeps the files before it', async () => {
      const { run_id } = await harness.createRun({ config });
      await expect(
        harness.attempt(withCrash(harness, 'arrived', 4)).exportInterval({ run_id }),
      ).rejects.toThrow();
      const run = await harness.recorder.read(run_id);
      const [range] = run.ranges;
      const [first] = await harness.recorder.readFiles(run_id, run);
      expect(range?.files.count).toBeGreaterThan(0);
      const destination = await harness.openDestination(run.spec, () => undefined);
      const { signal } = new AbortController();
      await destination.abortUpload(range?.upload?.key ?? '', range?.upload?.upload_id ?? '', signal);
      destination.close();
      await harness.attempt().exportInterval({ run_id });
      const { files } = await publishAndVerify(run_id);
      expect(files.map(({ key }) => key)).not.toContain(range?.upload?.key);
      expect(files[0]?.key).toBe(first?.key);
    });

    it('continues as new between files too', async () => {
      let { run_id } = (await harness.createRun({ config })) as { run_id: string };
      const settings = { ...harness.settings, EXPORTD_PARTS_PER_EXECUTION: 1 };
      let executions = 1;
      while (!(await harness.attempt({ settings }).exportInterval({ run_id })).finished) {
        ({ run_id } = await continueRun(harness.journal, run_id));
        executions += 1;
      }
      const { files } = await publishAndVerify(run_id);
      expect(executions).toBeGreaterThan(files.length);
    });
  });

  describe('a split interval', () => {
    const settings = () => ({ ...harness.settings, EXPORTD_RANGE_ROWS: 1_600 });

    async function createSplitRun(more: { config?: object } = {}) {
      const { run_id } = await harness.createRun(more);
      const counted = await countRows(
        { ...harness, settings: settings() },
        { run_id, settled: true, blocked_by: [] },
        new AbortController().signal,
      );
      expect(counted).toMatchObject({ rows: eventCount, ranges: 3 });
      return { run_id };
    }
    const exportAllRanges = (run_id: string, activities: Pick<ExportActivities, 'exportRange'>) =>
      Promise.all([0, 1, 2].map((range) => activities.exportRange({ run_id, range })));

    it.each(casesOf([{ config }], [{}, { config }]))(
      'is exported by concurrent attempts to one manifest (%j)',
      async (more) => {
        const { run_id } = await createSplitRun(more);
        await exportAllRanges(run_id, harness.attempt());
        expect(await harness.attempt().finishExport({ run_id })).toMatchObject({
          finished: true,
          rows: eventCount,
        });
        const { files } = await publishAndVerify(run_id);
        expect(files.map(({ key }) => /-(\d)\.\d+\.jsonl$/.exec(key)?.[1])).toEqual(
          expect.arrayContaining(['0', '1', '2']),
        );
      },
    );

    it('resumes each range after a crash', async () => {
      const { run_id } = await createSplitRun();
      await harness.attempt().exportRange({ run_id, range: 1 });
      const crashing = withCrash(harness, 'arrived');
      for (const range of [0, 2])
        await expect(harness.attempt(crashing).exportRange({ run_id, range })).rejects.toThrow();
      const second = withInterruptions(harness, {});
      await exportAllRanges(run_id, harness.attempt(second));
      await harness.attempt().finishExport({ run_id });
      await publishAndVerify(run_id);
    });

    it('is not finished until every range is', async () => {
      const { run_id } = await createSplitRun();
      await harness.attempt().exportRange({ run_id, range: 0 });
      expect(await harness.attempt().finishExport({ run_id })).toMatchObject({ finished: false });
      await exportAllRanges(run_id, harness.attempt());
      await harness.attempt().finishExport({ run_id });
      await publishAndVerify(run_id);
    });
  });

  describe('rows that arrive during the export of their interval', () => {
    it('are exported with all others as the next generation before anything is published', async () => {
      const { run_id } = await harness.createRun();
      let late = 1;
      const intercepted = withInterruptions(harness, {
        complete: async () => {
          if (late-- > 0) await insertEvents(harness.database.pool, 1, interval.start);
        },
      });
      const exported = await harness.attempt(intercepted).exportInterval({ run_id });
      expect(exported).toMatchObject({ finished: true, generation: 2, rows: eventCount + 1 });
      await publishAndVerify(run_id, 2);
    });
  });
});
