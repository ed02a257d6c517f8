import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError } from '../../src/destination/destination.ts';
import type { OpenLocation } from '../../src/destination/open_destination.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { createHours, createReruns } from './rerun.ts';
import { warningsOf } from './stores.ts';
import { finishedOf } from '../../src/domain/run_state.ts';

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());

const nextHour = createHours();
const newInterval = () => createReruns(harness, nextHour());

const uuidsAt = async (manifestKey: string | null): Promise<string[]> =>
  harness.reader.uuidsIn(await harness.reader.manifestAt(manifestKey ?? ''));

/** Opens locations whose objects cannot be read, and lists the keys of those that were opened. */
const observing = (denied = false): { openLocation: OpenLocation; opened: string[] } => {
  const opened: string[] = [];
  const openLocation: OpenLocation = async (location) => {
    const destination = await harness.openLocation(location);
    return {
      ...destination,
      openObject: (key, signal) => {
        opened.push(key);
        return denied
          ? Promise.reject(new DestinationError('AccessDenied', 'It is denied.', { transient: false }))
          : destination.openObject(key, signal);
      },
    };
  };
  return { openLocation, opened };
};

describe('a run that replaces a manifest', () => {
  it('is held when the source has lost every row, and the bucket keeps them', async () => {
    const { batchExportId, insert, remove, run } = newInterval();
    await insert(1, 1_000);
    const first = await run();
    const before = await uuidsAt(first.manifest_key);
    expect(before).toHaveLength(1_000);
    await remove(1, 1_000);

    const second = await run();
    expect(second.latest_error).toMatch(
      /^RowsMissingInSource: The source no longer has 1,000 of the 1,000 rows .* it has 0 rows\..*export difference/,
    );
    expect(second.state.status).toBe('Failed');
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await uuidsAt(first.manifest_key)).toEqual(before);
    expect(await harness.reader.manifestAt(first.manifest_key ?? '')).toMatchObject({ generation: 1 });
  });

  const deletions: [string, [number, number], number][] = [
    ['2 of 10 rows deleted', [3, 4], 2],
    ['the first row deleted', [1, 1], 1],
    ['the last row deleted', [10, 10], 1],
  ];
  it.each(deletions)('is held with the numbers: %s', async (_, deleted, missing) => {
    const { insert, remove, run } = newInterval();
    await insert(1, 10);
    const first = await run();
    const before = await uuidsAt(first.manifest_key);
    await remove(...deleted);
    const second = await run();
    expect(second.latest_error).toContain(
      `RowsMissingInSource: The source no longer has ${missing} of the 10`,
    );
    const source_rows = 10 - missing;
    expect(second.check).toMatchObject({
      outcome: 'rows_missing',
      missing_rows: missing,
      bucket_rows: 10,
      source_rows,
    });
    expect(await uuidsAt(first.manifest_key)).toEqual(before);
  });

  it('publishes late rows if every row is still there, and the older generation is deleted', async () => {
    const { batchExportId, insert, run } = newInterval();
    await insert(1, 10);
    const first = await run();
    const before = await uuidsAt(first.manifest_key);
    await insert(11, 14);
    const second = await run();
    expect(second).toMatchObject({ latest_error: null, check: { outcome: 'every_row_present' } });
    expect(await uuidsAt(second.manifest_key)).toEqual(expect.arrayContaining(before));
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(2);
  });

  it('reads nothing when the rows are the same, and does not change when it is checked again', async () => {
    const { insert, create, count, proceed, run } = newInterval();
    await insert(1, 10);
    await run();
    const { run_id } = await create();
    expect(await count(run_id)).toMatchObject({ check_replacement: false });
    const { openLocation, opened } = observing();
    expect(await proceed(run_id, { openLocation })).toMatchObject({ latest_error: null });
    expect(opened).toEqual([]);
    expect((await harness.recorder.read(run_id)).replacement).toMatchObject({ outcome: 'same_rows' });
  });

  it('reads the older files once, however often its check is repeated', async () => {
    const { insert, remove, create, count, run } = newInterval();
    await insert(1, 10);
    await run();
    await remove(1, 1);
    const { run_id } = await create();
    expect(await count(run_id)).toMatchObject({ check_replacement: true });
    const { openLocation, opened } = observing();
    const attempt = harness.attempt({ openLocation });
    const held = { type: 'RowsMissingInSource', nonRetryable: true };
    await expect(attempt.checkReplacement({ run_id })).rejects.toMatchObject(held);
    expect(await count(run_id)).toMatchObject({ check_replacement: true });
    await expect(attempt.checkReplacement({ run_id })).rejects.toMatchObject(held);
    expect(opened).toHaveLength(1);
  });

  it('reads only files with rows of the buckets that differ', async () => {
    const hour = nextHour();
    const { remove, run, batchExportId } = createReruns(harness, hour);
    const config = { max_file_size_mb: 1, compression: null };
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, gen_random_uuid(), 'event', 'person', jsonb_build_object('noise', repeat(md5(n::text), 100)), moment, moment
       from generate_series(1, 3600) n
       cross join lateral (select $1::timestamptz + make_interval(secs => n - 1) as moment) m`,
      [hour.start],
    );
    const first = await run({ config });
    const { files } = await harness.reader.manifestAt(first.manifest_key ?? '');
    expect(files.length).toBeGreaterThan(5);
    await remove(1_800, 1_800);
    const { openLocation, opened } = observing();
    const second = await run({ config, batchExportId }, { openLocation });
    expect(second.check).toMatchObject({ outcome: 'rows_missing', missing_rows: 1, bucket_rows: 3_600 });
    expect(opened.length).toBeGreaterThan(0);
    expect(opened.length).toBeLessThan(3);
  });

  it.each([
    { file_format: 'JSONLines', compression: 'gzip' },
    { file_format: 'CSV', compression: 'brotli' },
    { file_format: 'Parquet', compression: 'zstd' },
  ])('compares the keys in files of $file_format', async (config) => {
    const { insert, remove, run } = newInterval();
    await insert(1, 10);
    await run({ config });
    await insert(11, 12);
    expect((await run({ config })).check).toMatchObject({ outcome: 'every_row_present' });
    await remove(2, 2);
    await insert(13, 15);
    const third = await run({ config });
    expect(third.check).toMatchObject({ outcome: 'late_rows_added', missing_rows: 1 });
    expect(third.state.ranges).toMatchObject([{ files: { count: 2, rows: 15 } }]);
    // The keys of both files are compared.
    await insert(1, 1);
    expect((await run({ config })).check).toMatchObject({ outcome: 'late_rows_added', missing_rows: 1 });
  });

  it('counts a doubled uuid as two rows', async () => {
    const hour = nextHour();
    const { run, insert } = createReruns(harness, hour);
    await insert(1, 3);
    const copy = `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
      select team_id, uuid, event, distinct_id, properties, timestamp, inserted_at from events
      where inserted_at = $1::timestamptz + interval '2 seconds' limit 1`;
    await harness.database.pool.query(copy, [hour.start]);
    expect(finishedOf((await run()).state)?.source_rows).toBe(4);
    await harness.database.pool.query(
      `delete from events where ctid = (select ctid from events
       where inserted_at = $1::timestamptz + interval '2 seconds' limit 1)`,
      [hour.start],
    );
    await insert(4, 4);
    expect((await run()).check).toMatchObject({
      outcome: 'late_rows_added',
      missing_rows: 1,
      bucket_rows: 4,
      base: { late_rows: 1 },
    });
  });

  it('counts rejected rows as rows of the bucket', async () => {
    const hour = nextHour();
    const { run, insert } = createReruns(harness, hour);
    const config = { on_bad_row: 'reject' };
    await insert(1, 5);
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       values (1, gen_random_uuid(), 'bad', 'd', '{}', 'infinity', $1::timestamptz + interval '3 seconds 500 milliseconds')`,
      [hour.start],
    );
    const first = await run({ config });
    expect(first.state.rejected_file).toMatchObject({ rows: 1 });
    await insert(6, 7);
    expect((await run({ config })).check).toMatchObject({ outcome: 'every_row_present', bucket_rows: 6 });
    await harness.database.pool.query(
      `delete from events where event = 'bad' and inserted_at >= $1 and inserted_at < $2`,
      [hour.start, hour.end],
    );
    await insert(8, 8);
    const third = await run({ config });
    expect(third.check).toMatchObject({ outcome: 'late_rows_added', missing_rows: 1 });
    expect(await harness.reader.manifestAt(third.manifest_key ?? '')).toMatchObject({
      rows: 8,
      rejected: 1,
      rejected_file: { rows: 1 },
    });
  });
});

describe('late rows of an interval whose source lacks exported rows', () => {
  it('are held if some are rejected and the manifest has such rows already', async () => {
    const hour = nextHour();
    const { run, insert, remove } = createReruns(harness, hour);
    const config = { on_bad_row: 'reject' };
    const insertBad = (second: number) =>
      harness.database.pool.query(
        `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
         values (1, gen_random_uuid(), 'bad', 'd', '{}', 'infinity', $1::timestamptz + $2 * interval '1 second')`,
        [hour.start, second],
      );
    await insert(1, 5);
    await insertBad(3.5);
    const first = await run({ config });
    const before = await harness.reader.manifestAt(first.manifest_key ?? '');
    await remove(3, 3);
    await insert(6, 6);
    await insertBad(6.5);
    const held = await run({ config });
    expect(held).toMatchObject({
      latest_error: expect.stringMatching(/^RowsMissingInSource: .*no longer has 1 of the 6 rows/),
      check: { outcome: 'rows_missing', missing_rows: 1 },
    });
    expect(await harness.reader.manifestAt(first.manifest_key ?? '')).toEqual(before);
  });

  it.each([
    ['among others', 101, 1_000],
    ['in an interval that is split into ranges', 101, 4],
    ['in a part of the interval that had none', 2_000, 1_000],
  ])('are added as one file, and every row is there once: %s', async (_, late, rangeRows) => {
    const config = { compression: null };
    const { batchExportId, insert, remove, run } = createReruns(harness, nextHour(), { rangeRows });
    await insert(1, 10);
    const first = await run({ config });
    const before = await harness.reader.manifestAt(first.manifest_key ?? '');
    const exported = await harness.reader.uuidsIn(before);
    await remove(3, 4);
    await insert(late, late + 3);
    await insert(5, 5);
    const second = await run({ config });
    expect(second).toMatchObject({
      latest_error: null,
      check: { outcome: 'late_rows_added', missing_rows: 2, bucket_rows: 10, source_rows: 13 },
      state: { records_total_count: 5 },
    });
    const manifest = await harness.reader.manifestAt(second.manifest_key ?? '');
    expect(manifest).toMatchObject({ rows: 15, source_rows: 13, kept: [], rejected: 0 });
    // A run in ranges has reserved one for them before it was checked.
    expect(manifest.generation).toBeGreaterThan(before.generation);
    expect(manifest.files).toHaveLength(before.files.length + 1);
    const uuids = await harness.reader.uuidsIn(manifest);
    expect(new Set(uuids).size).toBe(15);
    expect(uuids).toHaveLength(15);
    expect(uuids).toEqual(expect.arrayContaining(exported));
    expect(await warningsOf(harness, second.run_id)).toEqual([
      expect.stringMatching(/no longer has 2 of the 10 rows .* They stay.* 5 late rows .*export difference/),
    ]);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(manifest.files.length + 1);

    // The new manifest is replaced as any other.
    expect((await run({ config })).latest_error).toContain('no longer has 2 of the 15 rows');
    await remove(1, 1);
    await insert(7, 8);
    const third = await run({ config });
    expect(third).toMatchObject({
      latest_error: null,
      check: { outcome: 'late_rows_added', missing_rows: 3 },
    });
    const thrice = await harness.reader.uuidsIn(await harness.reader.manifestAt(third.manifest_key ?? ''));
    expect(new Set(thrice).size).toBe(17);
    expect(thrice).toHaveLength(17);
    const shrunk = await run({ config, allow_shrink: true });
    expect(await uuidsAt(shrunk.manifest_key)).toHaveLength(14);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    const { files } = await harness.reader.manifestAt(shrunk.manifest_key ?? '');
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(files.length + 1);
  });

  it('are held if the same key has a row that was exported, because rows of one key cannot be told apart', async () => {
    const hour = nextHour();
    const { insert, remove, run } = createReruns(harness, hour);
    await insert(1, 3);
    await run();
    await remove(1, 1);
    await harness.database.pool.query(
      `insert into events select * from events where event = 'event 2' and inserted_at >= $1 and inserted_at < $2`,
      [hour.start, hour.end],
    );
    expect((await run()).check).toMatchObject({ outcome: 'rows_missing', missing_rows: 1, source_rows: 3 });
  });
});

describe("the owner's choice of rows", () => {
  it('is not held, but a row that was deleted as well is', async () => {
    const { insert, remove, run } = newInterval();
    await insert(1, 10);
    await run();
    const config = { include_events: ['event 1', 'event 2'] };
    const narrowed = await run({ config });
    expect(narrowed).toMatchObject({ latest_error: null, check: { outcome: 'same_rows' } });
    expect(await uuidsAt(narrowed.manifest_key)).toHaveLength(2);
    // Only rows of the current manifest are compared: these are no longer exported.
    await remove(5, 6);
    expect((await run({ config })).latest_error).toBeNull();
    await remove(1, 1);
    expect((await run()).check).toMatchObject({ outcome: 'rows_missing', missing_rows: 1, bucket_rows: 2 });
  });

  it('applies to another model', async () => {
    const { insert, run } = newInterval();
    await insert(1, 3);
    await run();
    expect(await run({ model: 'persons' })).toMatchObject({ latest_error: null });
  });

  it('applies to a request that allows to shrink', async () => {
    const { insert, remove, run } = newInterval();
    await insert(1, 3);
    await run();
    await remove(2, 2);
    const shrunk = await run({ allow_shrink: true });
    expect(shrunk).toMatchObject({ latest_error: null, check: { outcome: 'shrink_allowed' } });
    expect(await uuidsAt(shrunk.manifest_key)).toHaveLength(2);
    expect(await warningsOf(harness, shrunk.run_id)).toEqual([
      'The run was allowed to remove rows: generation 1 had 1 more. Its files will be deleted.',
    ]);
  });
});

describe('a manifest whose keys cannot be read', () => {
  const unreadable = [
    ['without s3:GetObject', () => ({ denied: true })],
    ['without uuid in the files', () => ({ query: 'select event, _inserted_at from events' })],
  ] as const;

  it.each(unreadable)('is kept if a bucket has fewer rows: %s', async (_, choose) => {
    const { denied, query } = { denied: false, query: undefined, ...choose() };
    const { insert, remove, run } = newInterval();
    await insert(1, 10);
    await run({ query });
    await remove(1, 2);
    await insert(2_000, 2_010);
    const { openLocation } = observing(denied);
    expect((await run({ query }, { openLocation })).check).toMatchObject({
      outcome: 'rows_missing',
      missing_rows: 2,
    });
  });

  it.each(unreadable)('is replaced otherwise, and its files stay: %s', async (_, choose) => {
    const { denied, query } = { denied: false, query: undefined, ...choose() };
    const { batchExportId, insert, remove, run } = newInterval();
    await insert(1, 10);
    const first = await run({ query });
    const { files } = await harness.reader.manifestAt(first.manifest_key ?? '');
    await remove(1, 1);
    await insert(11, 12);
    const { openLocation } = observing(denied);
    const second = await run({ query }, { openLocation });
    expect(second).toMatchObject({ latest_error: null, check: { outcome: 'not_comparable' } });
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toEqual(
      expect.arrayContaining(files.map(({ key }) => key)),
    );
  });

  it('is replaced if its objects are gone', async () => {
    const { batchExportId, insert, remove, run } = newInterval();
    await insert(1, 10);
    await run();
    for (const key of await maintenance.keysOf(batchExportId)) await maintenance.deleteObject(key);
    await remove(1, 5);
    expect(await run()).toMatchObject({ latest_error: null, check: { outcome: 'every_row_present' } });
  });
});

describe('rows that are deleted after the check', () => {
  it.each([
    ['after equal fingerprints', null],
    ['after a comparison of keys', [11, 12]],
  ] as const)('hold the run %s', async (_, late) => {
    const { insert, remove, run } = newInterval();
    await insert(1, 10);
    const first = await run();
    const before = await uuidsAt(first.manifest_key);
    if (late) await insert(...late);
    const beforeExport = async (): Promise<void> => {
      await remove(5, 5);
      // As many late rows, so that the bucket does not lose rows.
      await insert(13, 13);
    };
    const second = await run({}, { beforeExport });
    expect(second.latest_error).toContain('RowsMissingInSource: The source no longer has 1 of the 10');
    expect(second.state).toMatchObject({ status: 'Failed', phase: { name: 'exported' } });
    expect(await uuidsAt(first.manifest_key)).toEqual(before);
  });

  it('hold a run that found no rows at first', async () => {
    const { insert, remove, run } = newInterval();
    await insert(1, 3);
    await run();
    await remove(1, 3);
    const { check, latest_error } = await run();
    expect(latest_error).toContain('RowsMissingInSource');
    expect(check).toMatchObject({ missing_rows: 3, source_rows: 0 });
  });

  it('hold a run whose interval was empty only while it was counted', async () => {
    const hour = nextHour();
    const { insert, create, count, proceed, run } = createReruns(harness, hour);
    await insert(1, 3);
    await run();
    await harness.database.pool.query(
      'create table gone as select * from events where inserted_at >= $1::timestamptz and inserted_at < $2::timestamptz'
        .replace('$1', `'${hour.start}'`)
        .replace('$2', `'${hour.end}'`),
    );
    await harness.database.pool.query('delete from events where inserted_at >= $1 and inserted_at < $2', [
      hour.start,
      hour.end,
    ]);
    const { run_id } = await create();
    await count(run_id);
    await harness.database.pool.query('insert into events select * from gone');
    expect((await proceed(run_id)).latest_error).toContain('RowsMissingInSource');
  });

  it('do not matter if they are late rows that came after the check', async () => {
    const { insert, run } = newInterval();
    await insert(1, 10);
    await run();
    const second = await run({}, { beforeExport: () => insert(11, 12) });
    expect(second).toMatchObject({
      latest_error: null,
      check: { outcome: 'every_row_present', generation: 2 },
    });
    expect(await uuidsAt(second.manifest_key)).toHaveLength(12);
  });
});

describe('persons', () => {
  it('are published again, because they move to later intervals', async () => {
    const hour = nextHour();
    const { batchExportId, run } = createReruns(harness, hour);
    await harness.database.pool.query(
      `with person as (insert into persons (team_id, id, properties, version, is_deleted, created_at, updated_at)
         values (1, gen_random_uuid(), '{}', 0, false, $1, $1) returning id)
       insert into person_distinct_ids (team_id, distinct_id, person_id, version, is_deleted, updated_at)
       select 1, 'moved ' || n, id, 0, false, $1 from person, generate_series(1, 3) n`,
      [hour.start],
    );
    const options = { model: 'persons' } as const;
    const first = await run(options);
    expect(finishedOf(first.state)?.source_rows).toBe(3);
    expect((await run(options)).check).toMatchObject({ outcome: 'same_rows' });
    await harness.database.pool.query(
      `update person_distinct_ids set updated_at = $1::timestamptz where distinct_id = 'moved 2'`,
      [hour.end],
    );
    const third = await run(options);
    expect(third).toMatchObject({ latest_error: null, check: { outcome: 'not_comparable' } });
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect((await maintenance.keysOf(batchExportId)).length).toBeGreaterThan(2);
  });
});

describe('a selection that depends on persons', () => {
  const query = `select uuid, _inserted_at from events where person.properties.plan = 'paid'`;

  it('is published again although fewer events are selected, and the older files stay', async () => {
    const hour = nextHour();
    const { batchExportId, insert, remove, run } = createReruns(harness, hour);
    const { rows } = await harness.database.pool.query<{ id: string }>(
      `with person as (insert into persons (team_id, id, properties, version, is_deleted, created_at, updated_at)
         values (1, gen_random_uuid(), '{"plan": "paid"}', 0, false, $1, $1) returning id)
       insert into person_distinct_ids (team_id, distinct_id, person_id, version, is_deleted, updated_at)
       select 1, 'person', id, 0, false, $1 from person returning person_id as id`,
      ['2025-01-01T00:00:00Z'],
    );
    await insert(1, 5);
    await harness.database.pool.query(
      'update events set person_id = $1 where inserted_at >= $2 and inserted_at < $3',
      [rows[0]?.id, hour.start, hour.end],
    );
    const first = await run({ query });
    expect(finishedOf(first.state)).toMatchObject({ source_rows: 5, fingerprint: { all_events: true } });
    const { files } = await harness.reader.manifestAt(first.manifest_key ?? '');
    await harness.database.pool.query(`update persons set properties = '{}' where id = $1`, [rows[0]?.id]);
    await insert(6, 6);
    const second = await run({ query });
    expect(second).toMatchObject({ latest_error: null, check: { outcome: 'not_comparable' } });
    expect(second.state.records_total_count).toBe(0);
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    expect(await maintenance.keysOf(batchExportId)).toEqual(
      expect.arrayContaining(files.map(({ key }) => key)),
    );
    await harness.database.pool.query(`update persons set properties = '{"plan": "paid"}' where id = $1`, [
      rows[0]?.id,
    ]);
    expect((await run({ query })).latest_error).toBeNull();
    await remove(2, 2);
    await insert(7, 8);
    expect((await run({ query })).check).toMatchObject({ outcome: 'rows_missing', missing_rows: 1 });
  });
});

describe('the check of a cancelled run', () => {
  it('stops', async () => {
    const { insert, create, run } = newInterval();
    await insert(1, 3);
    await run();
    await insert(4, 4);
    const { run_id } = await create();
    const cancelling = new AbortController();
    const openLocation: OpenLocation = async (location) => {
      const destination = await harness.openLocation(location);
      return {
        ...destination,
        openObject: (_, signal) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error));
            cancelling.abort(new Error('cancelled'));
          }),
      };
    };
    const attempt = harness.attempt({ openLocation, signal: cancelling.signal });
    await expect(attempt.checkReplacement({ run_id })).rejects.toThrow();
    expect((await harness.recorder.read(run_id)).replacement).toBeNull();
  });
});
