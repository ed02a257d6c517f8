import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { readDueMaintenance } from '../../src/decisions/due_maintenance.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { readRepairs } from '../decisions/read_backfills.ts';
import { isWarning, readLog } from '../decisions/read_log.ts';
import { createExportHarness, insertEvents, interval, type ExportHarness } from '../export/export_harness.ts';
import { createMaintenanceHarness, expire, type MaintenanceHarness } from './maintenance_harness.ts';
import { readEvents } from '../journal/read_stream.ts';
import { readComparisonGroups, readComparisons } from './read_comparisons.ts';
import { readNotifications } from '../notifications/read_notifications.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());
beforeEach(() => harness.database.pool.query('delete from events; delete from exportd.interval_comparisons'));

const query = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
  (await harness.database.pool.query<Row>(sql, values)).rows;

/** Exports the interval, or another one, with a new export. */
async function publishInterval(config: object = {}, of = interval) {
  const batchExportId = randomUUID();
  const { run_id } = await maintenance.publish(batchExportId, config, of);
  await maintenance.createExport(batchExportId, 1);
  return { batchExportId, run_id };
}

/** Moves the schedule of all comparisons, as if this time had passed. */
const elapse = (time: string) =>
  query(
    `update exportd.interval_comparisons set compared_from = compared_from - $1::interval,
       next_due_at = next_due_at - $1::interval, early_at = early_at - $1::interval,
       last_compared_at = last_compared_at - $1::interval, retry_at = retry_at - $1::interval`,
    time,
  );

/** Compares what is due of an export's group. */
async function compare(batchExportId: string, policy: Record<string, string> = {}) {
  const [group] = await readComparisonGroups(harness.database.pool, batchExportId);
  if (!group) throw new Error('The export has no comparisons.');
  return maintenance.activities(policy).compareIntervals(group);
}

const insertLate = (rows = 1, event = 'late', at = interval.start) =>
  query(
    `insert into events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
     select 1, gen_random_uuid(), $1, 'person', $2, $2 from generate_series(1, $3)`,
    event,
    at,
    rows,
  );

const deleteRows = (rows: number) =>
  query('delete from events where ctid in (select ctid from events order by inserted_at limit $1)', rows);

const outcomesOf = async (runId: string) =>
  (await readEvents(harness.database.pool, runId, 'IntervalCompared')).map(({ data }) => ({ data }));

const comparisonsOf = (of: Parameters<typeof readComparisons>[1]) =>
  readComparisons(harness.database.pool, of);
const logOf = (runId: string) => readLog(harness.database.pool, { run_id: runId }, isWarning);

describe('a comparison', () => {
  it('records that an interval is equal, without an event', async () => {
    await harness.insertEvents(10);
    const { batchExportId, run_id } = await publishInterval();
    expect(await compare(batchExportId)).toEqual({ compared: 0, differing: 0, has_more: false });
    await elapse('1 hour');
    expect(await compare(batchExportId)).toEqual({ compared: 1, differing: 0, has_more: false });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    expect(await outcomesOf(run_id)).toEqual([]);
    expect(await comparisonsOf({ run_id })).toMatchObject([
      { outcome: 'equal', comparisons: 1, source_rows: 10 },
    ]);
  });

  it('is not made once the rules of the bucket have deleted the objects', async () => {
    await harness.insertEvents(10);
    const { batchExportId } = await publishInterval();
    await insertLate();
    await elapse('1 hour');
    await expire(harness, batchExportId);
    expect(await compare(batchExportId)).toEqual({ compared: 0, differing: 0, has_more: false });
    await readDueMaintenance(harness.database.pool, quickPolicies().maintenance, []);
    expect(await comparisonsOf({ batch_export_id: batchExportId })).toMatchObject([
      { next_due_at: null, early_at: null },
    ]);
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
  });

  it('exports the interval again when rows arrived late', async () => {
    await harness.insertEvents(10);
    const { batchExportId, run_id } = await publishInterval();
    await insertLate();
    await elapse('1 hour');
    expect(await compare(batchExportId)).toEqual({ compared: 1, differing: 1, has_more: false });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
    const repairs = await readRepairs(harness.database.pool, batchExportId);
    expect(repairs).toMatchObject([{ status: 'Running' }]);
    expect(maintenance.startedRepairs).toContain(repairs[0]?.id);
    expect(await query('select from exportd.commands where batch_export_id = $1', batchExportId)).toEqual([]);
    expect(await outcomesOf(run_id)).toEqual([
      {
        data: { outcome: 'rows_added', bucket_rows: 10, source_rows: 11, added_rows: 1, missing_rows: 0 },
      },
    ]);
  });

  it('finds late rows when as many rows were deleted', async () => {
    await harness.insertEvents(10);
    const { batchExportId, run_id } = await publishInterval();
    await deleteRows(4);
    await insertLate(4);
    await elapse('1 hour');
    expect(await compare(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toHaveLength(1);
    expect(await logOf(run_id)).toEqual([
      expect.stringContaining('At least 3 late rows, and at least 3 rows were deleted from the source'),
    ]);
  });

  it('leaves an interval alone when rows were deleted from the source, and logs it once', async () => {
    await harness.insertEvents(10);
    const { batchExportId, run_id } = await publishInterval();
    await deleteRows(2);
    for (const time of ['1 hour', '1 day', '7 days']) {
      await elapse(time);
      expect(await compare(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    }
    expect(await maintenance.repairsOf(batchExportId)).toEqual([]);
    expect(await logOf(run_id)).toHaveLength(1);
    expect(await outcomesOf(run_id)).toMatchObject([{ data: { outcome: 'rows_missing', missing_rows: 2 } }]);
  });

  it('finds a late row among more deleted ones by their keys', async () => {
    await insertLate(5, 'in time');
    const { batchExportId, run_id } = await publishInterval();
    await deleteRows(3);
    await insertLate(1);
    await elapse('1 hour');
    expect(await compare(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
    expect(await outcomesOf(run_id)).toEqual([
      { data: { outcome: 'both', bucket_rows: 5, source_rows: 3, added_rows: 1, missing_rows: 3 } },
    ]);
  });

  it('compares only the rows that the export selects', async () => {
    await harness.insertEvents(10);
    const { batchExportId } = await publishInterval({ exclude_events: ['late'] });
    await insertLate();
    await elapse('1 hour');
    expect(await compare(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
  });

  it('ends when the source has no rows left, with one warning per export and day', async () => {
    await harness.insertEvents(10);
    const next = { start: interval.end, end: '2026-01-01T12:00:00.000Z' };
    await insertEvents(harness.database.pool, 5, next.start);
    const { batchExportId, run_id } = await publishInterval();
    const { run_id: second } = await maintenance.publish(batchExportId, {}, next);
    await query('delete from events');
    await elapse('1 hour');
    expect(await compare(batchExportId)).toMatchObject({ compared: 2, differing: 0 });
    expect([...(await logOf(run_id)), ...(await logOf(second))]).toEqual([
      expect.stringContaining('The source has no rows left for'),
    ]);
    expect(await outcomesOf(second)).toMatchObject([{ data: { outcome: 'source_expired' } }]);
    expect(await readNotifications(harness.database.pool, batchExportId)).toMatchObject([
      { type: 'interval.expired', run_id },
    ]);
    await elapse('10 years');
    expect(await compare(batchExportId)).toMatchObject({ compared: 0 });
  });
});

describe('the comparisons of an interval', () => {
  it('follow after an hour, a day and a week, then at twice the time each', async () => {
    await harness.insertEvents(3);
    const { batchExportId } = await publishInterval();
    const done: boolean[] = [];
    for (const time of [
      '59 minutes',
      '1 minute',
      '22 hours',
      '1 hour',
      '5 days',
      '1 day',
      '6 days',
      '1 day',
    ]) {
      await elapse(time);
      done.push((await compare(batchExportId)).compared === 1);
    }
    expect(done).toEqual([false, true, false, true, false, true, false, true]);
  });

  it('are done with those of its neighbours, of all exports of the same rows, with one statement', async () => {
    const next = { start: interval.end, end: '2026-01-01T12:00:00.000Z' };
    await harness.insertEvents(5);
    await insertEvents(harness.database.pool, 4, next.start);
    const { batchExportId, run_id } = await publishInterval();
    const { run_id: neighbour } = await maintenance.publish(batchExportId, {}, next);
    await publishInterval();
    await elapse('1 hour');
    maintenance.comparisons.statements = 0;
    expect(await compare(batchExportId)).toMatchObject({ compared: 3, differing: 0 });
    expect(maintenance.comparisons.statements).toBe(1);
    await query(
      `update exportd.interval_comparisons set compared_from = compared_from + interval '2 hours',
         next_due_at = next_due_at + interval '2 hours', early_at = early_at + interval '2 hours'
       where run_id = $1`,
      neighbour,
    );
    await insertLate(1, 'late', next.start);
    await elapse('23 hours');
    // The neighbour is not due, and compared early. Its next comparison is the one after.
    expect(await compare(batchExportId)).toMatchObject({ compared: 3, differing: 1 });
    expect(await outcomesOf(run_id)).toEqual([]);
    expect(await outcomesOf(neighbour)).toMatchObject([{ data: { outcome: 'rows_added', bucket_rows: 4 } }]);
    expect(
      await query(
        `select comparisons from exportd.interval_comparisons where next_due_at > clock_timestamp() + interval '3 days'`,
      ),
    ).toHaveLength(3);
  });

  it('stop for the rest of the round when the budget is used up', async () => {
    await harness.insertEvents(100);
    const { batchExportId } = await publishInterval();
    await elapse('1 hour');
    const slow = { EXPORTD_COMPARISON_ROWS_PER_SECOND: '1' };
    expect(await compare(batchExportId, slow)).toMatchObject({ compared: 1, has_more: false });
    await elapse('1 day');
    const due = async () =>
      (await readDueMaintenance(harness.database.pool, quickPolicies().maintenance, [])).tasks.filter(
        ({ kind }) => kind === 'compareIntervals',
      );
    expect(await due()).toEqual([]);
    await query('update exportd.comparison_budget set available_at = clock_timestamp()');
    expect(await due()).toHaveLength(1);
  });

  it('are delayed alone when their statement fails', async () => {
    await harness.insertEvents(3);
    const broken = await publishInterval();
    const working = await publishInterval({ exclude_events: ['late'] });
    await elapse('1 hour');
    maintenance.comparisons.fail = ({ selection }) => selection.exclude_events.length === 0;
    expect(await compare(broken.batchExportId)).toMatchObject({ compared: 0, has_more: false });
    expect(await compare(working.batchExportId)).toMatchObject({ compared: 1 });
    const delayed = () =>
      query(
        `select failures from exportd.interval_comparisons
         where batch_export_id = $1 and retry_at > clock_timestamp() and comparisons = 0`,
        broken.batchExportId,
      );
    expect(await delayed()).toEqual([{ failures: 1 }]);
    await elapse('1 minute');
    await compare(broken.batchExportId);
    expect(await delayed()).toEqual([{ failures: 2 }]);
    maintenance.comparisons.fail = () => false;
    await elapse('2 minutes');
    expect(await compare(broken.batchExportId)).toMatchObject({ compared: 1 });
  });
});

describe('a comparison of persons', () => {
  beforeEach(() => harness.database.pool.query('delete from persons; delete from person_distinct_ids'));

  const secondsIn = (seconds: number): string =>
    new Date(Date.parse(interval.start) + seconds * 1000).toISOString();

  /** Inserts persons with these distinct ids, whose state is of a second of the interval. */
  const insertPersons = (second: number, ...distinctIds: string[]) =>
    query(
      `with person as (
         insert into persons (team_id, id, properties, updated_at)
         select 1, gen_random_uuid(), jsonb_build_object('id', id), $1 from unnest($2::text[]) id
         returning id, properties ->> 'id' as distinct_id)
       insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       select 1, distinct_id, id, $1 from person`,
      secondsIn(second),
      distinctIds,
    );

  const setTime = (distinctId: string, second: number) =>
    query(
      `update persons set updated_at = $2 from person_distinct_ids mapping
       where mapping.person_id = persons.id and mapping.distinct_id = $1`,
      distinctId,
      secondsIn(second),
    );

  /** Exports the persons of the interval. */
  async function publishPersons(config: object = {}, dialect?: string) {
    const batchExportId = randomUUID();
    await maintenance.createExport(batchExportId, 1, 'persons');
    const { run_id } = await republish(batchExportId, config, dialect);
    return { batchExportId, run_id };
  }
  async function republish(batchExportId: string, config: object = {}, dialect?: string) {
    const run = await harness.createRun({ batchExportId, model: 'persons', config, query: dialect });
    const activities = harness.attempt();
    await activities.exportInterval(run);
    return { ...run, ...(await activities.publishManifest(run)) };
  }

  const compareNext = async (batchExportId: string) => {
    await elapse('400 days');
    return compare(batchExportId);
  };

  it('exports the interval again when one was committed late', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons();
    await insertPersons(5, 'late');
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
    expect(await maintenance.repairsOf(batchExportId)).toEqual([run_id]);
    expect(await outcomesOf(run_id)).toMatchObject([{ data: { outcome: 'rows_added', added_rows: 1 } }]);
    expect(await logOf(run_id)).toEqual([expect.stringContaining('1 persons of')]);
    const again = await republish(batchExportId);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await comparisonsOf({ run_id: again.run_id })).toMatchObject([
      { outcome: 'equal', added_rows: 0 },
    ]);
  });

  it('finds no difference in persons that moved to a later interval', async () => {
    await insertPersons(10, 'a', 'b', 'c');
    const { batchExportId, run_id } = await publishPersons();
    for (const [distinctId, ids] of [
      ['a', 2],
      ['b', 1],
      ['c', 0],
    ] as const) {
      await setTime(distinctId, 4_000);
      expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
      expect(await comparisonsOf({ run_id })).toMatchObject([{ source_rows: ids }]);
    }
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'equal', added_rows: 0 }]);
    expect(await outcomesOf(run_id)).toEqual([]);
    expect(await logOf(run_id)).toEqual([]);
  });

  it('finds a person that changed late within a few seconds, which leaves ids and numbers as they were', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons();
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    await setTime('a', 11);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
    expect(await outcomesOf(run_id)).toMatchObject([{ data: { outcome: 'rows_added', added_rows: 1 } }]);
  });

  it('finds a person that changed with a time before that of its distinct id, which leaves the time as it was', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons();
    await query(
      `update persons set updated_at = $1, version = persons.version + 1, properties = '{"id": "new"}'
       from person_distinct_ids mapping where mapping.person_id = persons.id and mapping.distinct_id = 'a'`,
      secondsIn(9),
    );
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'rows_added', added_rows: 1 }]);
    await republish(batchExportId);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
  });

  it('finds as many late persons as have left', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons();
    await setTime('a', 4_000);
    await insertPersons(10, 'late');
    expect(await compareNext(batchExportId)).toMatchObject({ differing: 1 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'rows_added', added_rows: 1 }]);
  });

  it('finds persons in the files of earlier generations', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId } = await publishPersons();
    await setTime('a', 4_000);
    const { run_id } = await republish(batchExportId);
    // The source is restored from a backup.
    await setTime('a', 10);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'equal', added_rows: 0 }]);
  });

  it.each([
    { file_format: 'JSONLines' },
    { file_format: 'CSV' },
    { file_format: 'Parquet', compression: 'zstd' },
  ])('compares distinct ids in the order of their bytes: %j', async (config) => {
    await insertPersons(10, '\ufffd', '😀', 'ä', 'Z', 'a', '_');
    const { batchExportId, run_id } = await publishPersons(config);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'equal', added_rows: 0 }]);
    await insertPersons(10, '😁');
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
  });

  it('compares numbers where the files have no keys', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons({}, 'select properties from persons');
    await setTime('a', 11);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: null, added_rows: null }]);
    await insertPersons(12, 'c');
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 1 });
  });

  it('reads the files once for each state of the source', async () => {
    await insertPersons(10, 'a', 'b');
    const { batchExportId, run_id } = await publishPersons();
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    for (const key of await maintenance.keysOf(batchExportId)) await maintenance.deleteObject(key);
    await setTime('a', 4_000);
    // The bucket of `b` has changed, and its file cannot be read: nothing new is known.
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    await setTime('a', 10);
    expect(await compareNext(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await comparisonsOf({ run_id })).toMatchObject([{ outcome: 'equal', added_rows: 0 }]);
  });

  it('is made apart from that of events with the same selection', async () => {
    await harness.insertEvents(3);
    await insertPersons(10, 'a');
    const events = await publishInterval();
    const { batchExportId } = await publishPersons();
    expect(await compareNext(events.batchExportId)).toMatchObject({ compared: 1, differing: 0 });
    expect(await compare(batchExportId)).toMatchObject({ compared: 1, differing: 0 });
  });
});
