import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Manifest } from '../../src/destination/manifest.ts';
import { createExportHarness, type ExportHarness, insertEvents, interval } from '../export/export_harness.ts';
import { createHours } from '../export/rerun.ts';
import { createBucket } from '../setup/bucket.ts';
import { randomCases } from '../setup/effort.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';
import { type Insertion, type PromisedEvents, startEvents, type Swap } from './promised_events.ts';
import { type PersonChange, type PromisedPersons, startPersons } from './promised_persons.ts';

describe('earlier generations', () => {
  let harness: ExportHarness;
  let maintenance: MaintenanceHarness;

  beforeAll(async () => {
    harness = await createExportHarness();
    maintenance = createMaintenanceHarness(harness);
  });
  afterAll(() => harness.close());

  const query = (statement: string, ...values: readonly unknown[]) =>
    harness.database.pool.query(statement, [...values]);

  beforeEach(() =>
    harness.database.pool.query('delete from events; delete from persons; delete from person_distinct_ids'),
  );

  /** Inserts persons `p1`, `p2`, … that were updated in the interval. */
  const insertPersons = (count: number) =>
    query(
      `with person as (
       insert into persons (team_id, id, properties, created_at, updated_at)
       select 1, gen_random_uuid(), jsonb_build_object('number', n), $2, $2 from generate_series(1, $1::int) n
       returning id, properties ->> 'number' as number)
     insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
     select 1, 'p' || number, id, $2 from person`,
      count,
      interval.start,
    );

  /** A person changes, so that the state of the interval is in no relation any more. */
  const movePerson = (distinctId: string) =>
    query(
      `update persons set updated_at = $2 from person_distinct_ids mapping
     where mapping.person_id = persons.id and mapping.distinct_id = $1`,
      distinctId,
      interval.end,
    );

  const deleteEvents = (count: number) =>
    query('delete from events where uuid in (select uuid from events order by inserted_at limit $1)', count);

  type Run = Parameters<ExportHarness['createRun']>[0];

  /** Exports the interval and returns the manifest. */
  async function publish(more: Run): Promise<Manifest & { batchExportId: string; manifest_key: string }> {
    const run = await harness.createRun(more);
    const attempt = harness.attempt();
    await attempt.exportInterval(run);
    const { manifest_key } = await attempt.publishManifest(run);
    const { batchExportId } = run;
    return { ...(await harness.reader.manifestAt(manifest_key)), batchExportId, manifest_key };
  }

  const cleanUp = (batchExportId: string) =>
    maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });

  const keysOf = (files: readonly { readonly key: string }[]): string[] => files.map(({ key }) => key);

  /** The distinct ids in the files. */
  async function distinctIdsIn(files: readonly { readonly key: string }[]): Promise<Set<string>> {
    const texts = await Promise.all(keysOf(files).map((key) => harness.reader.textOf(key)));
    const lines = texts.flatMap((text) => text.trimEnd().split('\n'));
    return new Set(lines.map((line) => (JSON.parse(line) as { distinct_id: string }).distinct_id));
  }

  describe('files of persons of an earlier generation', () => {
    it('stay while they may have the only state of a person, and the manifest names them', async () => {
      await insertPersons(3);
      const first = await publish({ model: 'persons' });
      const { batchExportId } = first;
      await movePerson('p1');
      const second = await publish({ model: 'persons', batchExportId });
      await movePerson('p2');
      const third = await publish({ model: 'persons', batchExportId });
      await cleanUp(batchExportId);

      expect(second).toMatchObject({ rows: 2, kept: [], earlier: [{ generation: 1, rows: 3 }] });
      expect(keysOf(third.earlier)).toEqual([...keysOf(first.files), ...keysOf(second.files)]);
      expect(await distinctIdsIn(third.files)).toEqual(new Set(['p3']));
      expect(await distinctIdsIn([...third.files, ...third.earlier])).toEqual(new Set(['p1', 'p2', 'p3']));
    });

    it('stay when the same persons have another state: the row of one was deleted, not its mapping', async () => {
      await insertPersons(1);
      await query('update persons set updated_at = $1', new Date(Date.parse(interval.start) + 10_000));
      const first = await publish({ model: 'persons' });
      await query('delete from persons');
      const second = await publish({ model: 'persons', batchExportId: first.batchExportId });
      await cleanUp(first.batchExportId);
      expect(second).toMatchObject({ rows: 1, earlier: [{ generation: 1, rows: 1 }] });
      expect(await harness.reader.textOf(second.earlier[0]?.key ?? '')).toContain('"number": 1');
    });

    it('are deleted once a newer generation has the same rows', async () => {
      await insertPersons(2);
      const first = await publish({ model: 'persons' });
      const { batchExportId, manifest_key } = first;
      const second = await publish({ model: 'persons', batchExportId });
      await cleanUp(batchExportId);
      expect(second.earlier).toEqual([]);
      expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
        [manifest_key, ...keysOf(second.files)].toSorted(),
      );
    });

    it.each<[string, Run]>([
      ['the request allows it', { allow_shrink: true }],
      ['the config follows the source', { config: { on_missing_rows: 'follow' } }],
    ])('are deleted with those before them when %s', async (_, more) => {
      await insertPersons(3);
      const { batchExportId, manifest_key } = await publish({ model: 'persons' });
      await movePerson('p1');
      const second = await publish({ model: 'persons', batchExportId });
      expect(second.earlier).toHaveLength(1);
      const third = await publish({ model: 'persons', batchExportId, ...more });
      await cleanUp(batchExportId);
      expect(third).toMatchObject({ kept: [], earlier: [] });
      expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
        [manifest_key, ...keysOf(third.files)].toSorted(),
      );
    });

    it('stay under a former prefix, without the manifest there', async () => {
      await insertPersons(2);
      const first = await publish({ model: 'persons' });
      const { batchExportId } = first;
      await movePerson('p1');
      const config = { prefix: `${batchExportId}/moved` };
      const second = await publish({ model: 'persons', batchExportId, config });
      await cleanUp(batchExportId);
      expect(keysOf(second.earlier)).toEqual(keysOf(first.files));
      expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
        [...keysOf(first.files), ...keysOf(second.files), second.manifest_key].toSorted(),
      );
    });

    it('stay in a former bucket with the manifest there, also after the next generation', async () => {
      await insertPersons(2);
      const other = await createBucket();
      try {
        const first = await publish({ model: 'persons' });
        const { batchExportId, manifest_key } = first;
        const before = await maintenance.keysOf(batchExportId);
        await movePerson('p1');
        for (const generation of [2, 3]) {
          const run = await harness.createRun({
            model: 'persons',
            batchExportId,
            config: { bucket_name: other.bucket },
          });
          await harness.attempt().exportInterval(run);
          await harness.attempt().publishManifest(run);
          await cleanUp(batchExportId);
          expect(await harness.recorder.read(run.run_id)).toMatchObject({
            generation,
            phase: { earlier_generations: { kept: [], earlier: [], elsewhere: [1] } },
          });
        }
        expect(await maintenance.keysOf(batchExportId)).toEqual(before);
        expect(before).toContain(manifest_key);
        expect(await maintenance.keysOf(batchExportId, other)).toHaveLength(2);
      } finally {
        other.client.destroy();
      }
    });
  });

  describe('files of events of an earlier generation', () => {
    /** Files without uuid, so that their rows cannot be compared by key. */
    const withoutUuid = 'select event, timestamp from events';

    it('stay if their rows cannot be compared, until shrinking is allowed', async () => {
      await insertEvents(harness.database.pool, 10, interval.start);
      const first = await publish({ query: withoutUuid });
      const { batchExportId, manifest_key } = first;
      await insertEvents(harness.database.pool, 5, interval.start);
      const second = await publish({ query: withoutUuid, batchExportId });
      await cleanUp(batchExportId);
      expect(second).toMatchObject({ rows: 15, earlier: [], kept: [{ generation: 1, rows: 10 }] });
      expect(await maintenance.keysOf(batchExportId)).toEqual(expect.arrayContaining(keysOf(first.files)));

      const third = await publish({ query: withoutUuid, batchExportId });
      expect(keysOf(third.kept)).toEqual(keysOf(first.files));
      const last = await publish({ query: withoutUuid, batchExportId, allow_shrink: true });
      await cleanUp(batchExportId);
      expect(last.kept).toEqual([]);
      expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
        [manifest_key, ...keysOf(last.files)].toSorted(),
      );
    });

    it.each<[string, Run, number]>([
      ['follows the source', { config: { on_missing_rows: 'follow' } }, 8],
      ['was requested to shrink', { allow_shrink: true }, 8],
    ])('are deleted with rows that the source lacks when the run %s', async (_, more, rows) => {
      await insertEvents(harness.database.pool, 10, interval.start);
      const { batchExportId, manifest_key } = await publish({});
      await deleteEvents(2);
      const kept = await harness.createRun({ batchExportId });
      await harness.attempt().exportInterval(kept);
      await expect(harness.attempt().publishManifest(kept)).rejects.toMatchObject({
        type: 'RowsMissingInSource',
      });
      await maintenance.fail(kept.run_id);
      const shrunk = await publish({ batchExportId, ...more });
      await cleanUp(batchExportId);
      expect(shrunk).toMatchObject({ rows, kept: [], earlier: [] });
      expect((await maintenance.keysOf(batchExportId)).toSorted()).toEqual(
        [manifest_key, ...keysOf(shrunk.files)].toSorted(),
      );
    });

    it('are never deleted while a manifest names them, whatever the journal says', async () => {
      await insertPersons(2);
      const first = await publish({ model: 'persons' });
      const { batchExportId } = first;
      await movePerson('p1');
      await publish({ model: 'persons', batchExportId });
      await query(
        `update exportd.destination_objects set obsolete_at = now() - interval '1 day'
       where batch_export_id = $1 and generation = 1`,
        batchExportId,
      );
      await expect(cleanUp(batchExportId)).rejects.toMatchObject({ type: 'StillReferenced' });
      expect(await maintenance.keysOf(batchExportId)).toEqual(expect.arrayContaining(keysOf(first.files)));
    });
  });
});

describe('promise', () => {
  let harness: ExportHarness;
  let maintenance: MaintenanceHarness;
  beforeAll(async () => {
    harness = await createExportHarness();
    maintenance = createMaintenanceHarness(harness);
  });
  afterAll(() => harness.close());

  const nextHour = createHours();
  /** Three hours that no other case uses, in their order. */
  const nextHours = () => [nextHour(), nextHour(), nextHour()].toReversed();

  /** A step, with a label for counterexamples. */
  type Step<Export> = readonly [label: string, run: (of: Export) => Promise<unknown>];
  const stepsOf =
    <Export>() =>
    <Value>(
      name: string,
      values: fc.Arbitrary<Value>,
      run: (of: Export, value: Value) => Promise<unknown>,
    ): fc.Arbitrary<Step<Export>> =>
      values.map((value) => [`${name} ${JSON.stringify(value)}`, (of: Export) => run(of, value)]);

  /** Takes steps, and checks the promise after each. */
  async function take<Export extends { check: () => Promise<unknown> }>(
    of: Export,
    steps: readonly Step<Export>[],
    first: unknown,
  ): Promise<void> {
    const taken: string[] = [];
    try {
      for (const [label, run] of steps) {
        taken.push(label);
        await run(of);
        await of.check();
      }
    } catch (error) {
      throw new Error(`After ${JSON.stringify(first)}, ${taken.join(', ')}`, { cause: error });
    }
  }

  /** Mostly the first hour, so that steps meet. */
  const hourArb = fc.constantFrom(0, 0, 0, 0, 1, 2);
  /** Ranges of a few rows, and no ranges. */
  const rangeRowsArb = fc.constantFrom(2, 1_000);
  /** Few requests allow to shrink, because little is promised after one. */
  const allowShrinkArb = fc.constantFrom(false, false, true);

  const insertionArb: fc.Arbitrary<Insertion> = fc.record({
    hour: hourArb,
    rows: fc.integer({ min: 1, max: 4 }),
    // Few buckets, so that late and deleted rows meet.
    second: fc.constantFrom(0, 10, 60),
    twice: fc.boolean(),
    spread: fc.boolean(),
  });
  const swapArb: fc.Arbitrary<Swap> = fc.record({
    hour: hourArb,
    choice: fc.nat({ max: 5 }),
    deleted: fc.integer({ min: 1, max: 3 }),
    late: fc.nat({ max: 2 }),
  });
  const sameHour = (swap: Swap | null, hour: number): Swap | null => swap && { ...swap, hour };

  const eventsStep = stepsOf<PromisedEvents>();
  /** Leaves an hour with fewer rows of one instant, of which one is late: only their keys show it. */
  const hideLateRow = async (of: PromisedEvents): Promise<void> => {
    await of.insert({ hour: 1, rows: 3, second: 0, twice: false, spread: false });
    await of.run(1, false);
    await of.swap({ hour: 1, choice: 0, deleted: 2, late: 1 });
    await of.compare();
  };
  const eventsStepArb = fc.oneof(
    eventsStep('insert', insertionArb, (of, insertion) => of.insert(insertion)),
    eventsStep('insert uncommitted', insertionArb, (of, insertion) => of.insertUncommitted(insertion)),
    eventsStep('commit', fc.constant(null), (of) => of.commit()),
    eventsStep('swap', swapArb, (of, swap) => of.swap(swap)),
    eventsStep('swap and run', swapArb, async (of, swap) => {
      await of.swap(swap);
      await of.run(swap.hour, false);
    }),
    eventsStep('swap and compare', swapArb, async (of, swap) => {
      await of.swap(swap);
      await of.compare();
    }),
    eventsStep('run during a swap', fc.tuple(hourArb, fc.option(swapArb)), (of, [hour, swap]) =>
      of.run(hour, false, sameHour(swap, hour)),
    ),
    eventsStep('run and allow shrinking', hourArb, (of, hour) => of.run(hour, true)),
    eventsStep('backfill', allowShrinkArb, (of, allowShrink) => of.backfill(allowShrink)),
    eventsStep('compare', fc.constant(null), (of) => of.compare()),
    eventsStep('clean up', fc.constant(null), (of) => of.cleanUp()),
  );

  const changeArb: fc.Arbitrary<PersonChange> = fc.record({
    choice: fc.nat({ max: 8 }),
    kind: fc.constantFrom('update', 'update', 'mark as deleted', 'delete', 'delete a distinct id', 'merge'),
    // Within a bucket, and to the next hours.
    seconds: fc.constantFrom(1, 100, 3_600, 7_200),
  });

  const personsStep = stepsOf<PromisedPersons>();
  /** Leaves an hour whose generation before the last has the only exported state of a person that has moved. */
  const leaveEarlierFiles = async (of: PromisedPersons): Promise<void> => {
    await of.change({ choice: 0, kind: 'update', seconds: 7_200 });
    await of.run(0, false);
    await of.insert(1, 1, 10);
    await of.run(0, false);
  };
  const personsStepArb = fc.oneof(
    personsStep(
      'insert',
      fc.tuple(fc.integer({ min: 1, max: 3 }), fc.constantFrom(1, 2)),
      (of, [persons, ids]) => of.insert(persons, ids, 10),
    ),
    personsStep('change', changeArb, (of, change) => of.change(change)),
    personsStep('change and run', fc.tuple(changeArb, hourArb), async (of, [change, hour]) => {
      await of.change(change);
      await of.run(hour, false);
    }),
    personsStep('run during a change', fc.tuple(hourArb, fc.option(changeArb)), (of, [hour, change]) =>
      of.run(hour, false, change),
    ),
    personsStep('run and allow shrinking', hourArb, (of, hour) => of.run(hour, true)),
    personsStep('backfill', allowShrinkArb, (of, allowShrink) => of.backfill(allowShrink)),
    personsStep('clean up', fc.constant(null), (of) => of.cleanUp()),
  );

  describe('whatever happens to events', () => {
    it.each([
      ['compared by key', true, 2],
      ['without keys in the files', false, 1],
    ])(
      'no exported row leaves the bucket unless allowed, and every late row arrives or is reported: %s',
      async (_, hasKeys, cases) => {
        await fc.assert(
          fc.asyncProperty(
            rangeRowsArb,
            insertionArb,
            fc.array(eventsStepArb, { minLength: 8, maxLength: 14 }),
            async (rangeRows, first, steps) => {
              const events = await startEvents(harness, maintenance, nextHours(), { rangeRows, hasKeys });
              const hidden: Step<PromisedEvents> = ['hide a late row', hideLateRow];
              const last: Step<PromisedEvents> = ['compare at the end', (of) => of.compare()];
              try {
                await events.insert({ ...first, hour: 0 });
                await events.run(0, false);
                await take(events, [hidden, ...steps, last], [rangeRows, first]);
              } finally {
                await events.close();
              }
            },
          ),
          { numRuns: randomCases(cases), endOnFailure: true },
        );
        expect.hasAssertions();
      },
    );
  });

  describe('whatever happens to persons', () => {
    it('their newest exported states stay in the bucket unless allowed', async () => {
      await fc.assert(
        fc.asyncProperty(
          rangeRowsArb,
          fc.array(personsStepArb, { minLength: 8, maxLength: 14 }),
          async (rangeRows, steps) => {
            const persons = await startPersons(harness, maintenance, nextHours(), { rangeRows });
            await persons.insert(3, 2, 0);
            await persons.backfill(false);
            const earlier: Step<PromisedPersons> = ['leave earlier files', leaveEarlierFiles];
            await take(persons, [earlier, ...steps], rangeRows);
          },
        ),
        { numRuns: randomCases(2), endOnFailure: true },
      );
      expect.hasAssertions();
    });
  });
});
