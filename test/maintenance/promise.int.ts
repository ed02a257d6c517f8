import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import type { ComparisonGroup } from '../../src/decisions/due_comparisons.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours, createReruns } from '../export/rerun.ts';
import { randomCases } from '../setup/effort.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());

const nextHour = createHours();

/** How many rows have each uuid. A client that retries inserts a row twice. */
type Rows = ReadonlyMap<string, number>;

const rowsOf = (uuids: readonly string[]): Rows =>
  new Map([...Map.groupBy(uuids, (uuid) => uuid)].map(([uuid, same]) => [uuid, same.length]));
const contains = (all: Rows, some: Rows): boolean =>
  [...some].every(([uuid, rows]) => (all.get(uuid) ?? 0) >= rows);
const sizeOf = (rows: Rows): number => [...rows.values()].reduce((sum, number) => sum + number, 0);

/** An hour of one export: its source, its bucket, and what must hold between them after each step. */
async function startHour() {
  const hour = nextHour();
  const { batchExportId, run } = createReruns(harness, hour);
  const { pool, url } = harness.database;
  await pool.query('truncate exportd.interval_comparisons, exportd.comparison_budget');
  await maintenance.createExport(batchExportId, 1);
  const open: pg.Client[] = [];
  let bucket: Rows = new Map();
  let current: string | null = null;
  /** The source had no rows left when it was compared with the current manifest, which ends its comparisons. */
  let hasExpired = false;
  let isHeld = false;

  const readSource = async (): Promise<Rows> => {
    const { rows } = await pool.query<{ uuid: string }>(
      'select uuid from events where inserted_at >= $1 and inserted_at < $2',
      [hour.start, hour.end],
    );
    return rowsOf(rows.map(({ uuid }) => uuid));
  };
  const readBucket = async (): Promise<Rows> =>
    current === null
      ? new Map<string, number>()
      : rowsOf(await harness.reader.uuidsIn(await harness.reader.manifestAt(current)));

  const insert = async (client: Pick<pg.Client, 'query'>, { rows, second, twice, spread }: Insertion) => {
    await client.query(
      `with event as (
         select gen_random_uuid() as uuid, $1::timestamptz + make_interval(secs => $2 + n * $3) as moment
         from generate_series(1, $4::int) n)
       insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, uuid, 'event', 'person', '{}', moment, moment from event, generate_series(1, $5::int)`,
      [hour.start, second, spread ? 40 : 0, rows, twice ? 2 : 1],
    );
  };
  /** Exports the hour, and checks what a run may and must do. */
  const rerun = async (allow_shrink: boolean): Promise<void> => {
    const source = await readSource();
    const { latest_error, manifest_key, state } = await run({ allow_shrink });
    isHeld = !allow_shrink && !contains(source, bucket);
    if (isHeld) {
      expect(latest_error).toContain('RowsMissingInSource');
      expect(state.replacement).toMatchObject({ bucket_rows: sizeOf(bucket), source_rows: sizeOf(source) });
    } else {
      expect(latest_error).toBeNull();
      current = manifest_key;
      hasExpired = false;
      bucket = source;
    }
  };

  return {
    insert: (insertion: Insertion) => insert(pool, insertion),
    /** Inserts rows that are committed later. */
    insertUncommitted: async (insertion: Insertion) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      open.push(client);
      await client.query('begin');
      await insert(client, insertion);
    },
    commit: async () => {
      const client = open.shift();
      await client?.query('commit');
      await client?.end();
    },
    remove: async (choice: number, rows: number) => {
      await pool.query(
        `delete from events where ctid in (select ctid from events where inserted_at >= $1 and inserted_at < $2
           order by uuid, ctid offset $3 limit $4)`,
        [hour.start, hour.end, choice, rows],
      );
    },
    rerun,
    /** Compares the hour when that is due, and exports it again if that is ordered. */
    compare: async () => {
      await pool.query(
        `update exportd.interval_comparisons set compared_from = compared_from - interval '400 days',
           next_due_at = next_due_at - interval '400 days', early_at = early_at - interval '400 days'`,
      );
      const { rows: groups } = await pool.query<ComparisonGroup>(
        'select distinct team_id, selection_hash from exportd.interval_comparisons',
      );
      const source = await readSource();
      const isLate = !contains(bucket, source);
      const wasHeld = isHeld;
      let differing = 0;
      for (const group of groups)
        differing += (await maintenance.activities().compareIntervals(group)).differing;
      if (current === null || hasExpired) return;
      hasExpired = sizeOf(source) === 0 && sizeOf(bucket) > 0;
      // A held run is ordered again only if the source has changed since.
      if (!isLate || hasExpired) expect(differing).toBe(0);
      else if (!wasHeld) expect(differing).toBe(1);
      if (differing > 0) await rerun(false);
      if (isLate && !hasExpired && !isHeld) expect(bucket).toEqual(source);
    },
    cleanUp: () => maintenance.activities().cleanUpExport({ batch_export_id: batchExportId }),
    /** Nothing that was exported has left the bucket, and the ledger says what it has. */
    check: async () => {
      expect(await readBucket()).toEqual(bucket);
      const { rows } = await pool.query<{ status: string; rows: number | null; total: number | null }>(
        `select status, rows, (bucket_fingerprint->>'rows')::int as total from exportd.intervals
         where batch_export_id = $1 and data_interval_start = $2`,
        [batchExportId, hour.start],
      );
      if (current !== null)
        expect(rows).toEqual([
          { status: isHeld ? 'held' : 'exported', rows: sizeOf(bucket), total: sizeOf(bucket) },
        ]);
    },
    close: async () => {
      for (const client of open) await client.end();
    },
  };
}

type Hour = Awaited<ReturnType<typeof startHour>>;

interface Insertion {
  readonly rows: number;
  readonly second: number;
  /** Whether each row is inserted twice. */
  readonly twice: boolean;
  /** Whether the rows have different times. Those of a bulk load have one. */
  readonly spread: boolean;
}

const insertionArb: fc.Arbitrary<Insertion> = fc.record({
  rows: fc.integer({ min: 1, max: 4 }),
  // Few buckets, so that late and deleted rows meet.
  second: fc.constantFrom(0, 10, 60),
  twice: fc.boolean(),
  spread: fc.boolean(),
});

/** A step, with a label for counterexamples. */
type Step = readonly [label: string, run: (hour: Hour) => Promise<unknown>];
const labelled = <Value>(
  name: string,
  values: fc.Arbitrary<Value>,
  run: (hour: Hour, value: Value) => Promise<unknown>,
): fc.Arbitrary<Step> =>
  values.map((value) => [`${name} ${JSON.stringify(value)}`, (hour: Hour) => run(hour, value)]);

const stepArb = fc.oneof(
  labelled('insert', insertionArb, (hour, value) => hour.insert(value)),
  labelled('insert uncommitted', insertionArb, (hour, value) => hour.insertUncommitted(value)),
  labelled('commit', fc.constant(null), (hour) => hour.commit()),
  labelled('remove', fc.tuple(fc.nat({ max: 5 }), fc.integer({ min: 1, max: 3 })), (hour, value) =>
    hour.remove(...value),
  ),
  labelled('run', fc.constant(null), (hour) => hour.rerun(false)),
  labelled('run and allow shrinking', fc.constant(null), (hour) => hour.rerun(true)),
  labelled('compare', fc.constant(null), (hour) => hour.compare()),
  labelled('compare', fc.constant(null), (hour) => hour.compare()),
  labelled('clean up', fc.constant(null), (hour) => hour.cleanUp()),
);

describe('whatever happens to the source', () => {
  it('no exported row leaves the bucket unless allowed, and every late row arrives or is reported', async () => {
    await fc.assert(
      fc.asyncProperty(
        insertionArb,
        fc.array(stepArb, { minLength: 8, maxLength: 14 }),
        async (first, steps) => {
          const hour = await startHour();
          const done: string[] = [];
          try {
            await hour.insert(first);
            await hour.rerun(false);
            for (const [label, run] of steps) {
              done.push(label);
              await run(hour);
              await hour.check();
            }
            await hour.compare();
            await hour.check();
          } catch (error) {
            throw new Error(`After ${JSON.stringify(first)}, ${done.join(', ')}`, { cause: error });
          } finally {
            await hour.close();
          }
        },
      ),
      { numRuns: randomCases(5), endOnFailure: true },
    );
  });
});
