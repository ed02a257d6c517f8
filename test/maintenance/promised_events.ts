import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import pg from 'pg';
import type { ExportHarness } from '../export/export_harness.ts';
import { createReruns } from '../export/rerun.ts';
import { readIntervalEntry, sumOfIds } from './interval_entry.ts';
import type { MaintenanceHarness } from './maintenance_harness.ts';
import { readComparisonGroups } from './read_comparisons.ts';

/** How many rows have each uuid. A client that retries inserts a row twice. */
type Rows = ReadonlyMap<string, number>;

const rowsOf = (uuids: readonly string[]): Rows =>
  new Map([...Map.groupBy(uuids, (uuid) => uuid)].map(([uuid, same]) => [uuid, same.length]));
const contains = (all: Rows, some: Rows): boolean =>
  [...some].every(([uuid, rows]) => (all.get(uuid) ?? 0) >= rows);
const sizeOf = (rows: Rows): number => [...rows.values()].reduce((sum, number) => sum + number, 0);
const listOf = (rows: Rows): string[] =>
  [...rows].flatMap(([uuid, number]) => Array.from({ length: number }, () => uuid));
const unite = (one: Rows, other: Rows): Rows =>
  new Map([...one, ...[...other].map(([uuid, rows]) => [uuid, Math.max(rows, one.get(uuid) ?? 0)] as const)]);

/** Events that are inserted into an hour. */
export interface Insertion {
  readonly hour: number;
  readonly rows: number;
  readonly second: number;
  /** Whether each row is inserted twice. */
  readonly twice: boolean;
  /** Whether the rows have different times. Those of a bulk load have one. */
  readonly spread: boolean;
}

/** Events that are deleted, and late ones with the time of one of them, so that they are in its bucket. */
export interface Swap {
  readonly hour: number;
  readonly choice: number;
  readonly deleted: number;
  readonly late: number;
}

/** How an export of events differs from others. */
interface EventsOptions {
  readonly rangeRows: number;
  /** Whether its files have the keys of their rows. */
  readonly hasKeys: boolean;
}

/** An hour of the export, and what its manifest must have. */
interface Hour {
  readonly interval: { readonly start: string; readonly end: string };
  readonly reruns: ReturnType<typeof createReruns>;
  /** The manifest; null before the first. */
  manifest_key: string | null;
  /** The rows of its files. */
  bucket: Rows;
  /** The rows that the source had when they were exported. */
  source: Rows;
  /** The rows that it must name, be it in files that stay as `kept`. */
  exported: Rows;
  /** The source had no rows left when it was compared with the manifest, which ends its comparisons. */
  hasExpired: boolean;
  isHeld: boolean;
}

/** Hours of one export of events: source, bucket, and what must hold between them after each step. */
export async function startEvents(
  harness: ExportHarness,
  maintenance: MaintenanceHarness,
  intervals: readonly Hour['interval'][],
  { rangeRows, hasKeys }: EventsOptions,
) {
  const { pool, url } = harness.database;
  const batchExportId = randomUUID();
  await pool.query('delete from exportd.interval_comparisons');
  await maintenance.createExport(batchExportId, 1);
  const open: pg.Client[] = [];
  const hours = intervals.map((interval): Hour => ({
    interval,
    reruns: createReruns(harness, interval, { batchExportId, rangeRows }),
    manifest_key: null,
    bucket: new Map(),
    source: new Map(),
    exported: new Map(),
    hasExpired: false,
    isHeld: false,
  }));
  const hourAt = (position: number): Hour => {
    const hour = hours[position];
    if (!hour) throw new RangeError(`There is no hour ${position}.`);
    return hour;
  };

  const readSource = async ({ interval }: Hour): Promise<Rows> => {
    const { rows } = await pool.query<{ uuid: string }>(
      'select uuid from events where inserted_at >= $1 and inserted_at < $2',
      [interval.start, interval.end],
    );
    return rowsOf(rows.map(({ uuid }) => uuid));
  };
  /** The name of each event is its uuid, so that files without keys can be read. */
  const namesIn = async (files: readonly { readonly key: string }[]): Promise<string[]> => {
    const texts = await Promise.all(files.map(({ key }) => harness.reader.textOf(key)));
    const lines = texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
    return lines.map((line) => (JSON.parse(line) as { event: string }).event);
  };

  const insert = async (client: Pick<pg.Client, 'query'>, insertion: Insertion): Promise<void> => {
    const { hour, rows, second, twice, spread } = insertion;
    await client.query(
      `with event as (
         select gen_random_uuid() as uuid, $1::timestamptz + make_interval(secs => $2 + n * $3) as moment
         from generate_series(1, $4::int) n)
       insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, uuid, uuid::text, 'person', '{}', moment, moment from event, generate_series(1, $5::int)`,
      [hourAt(hour).interval.start, second, spread ? 40 : 0, rows, twice ? 2 : 1],
    );
  };
  const swap = async ({ hour, choice, deleted, late }: Swap): Promise<void> => {
    const { start, end } = hourAt(hour).interval;
    await pool.query(
      `with deleted as (
         delete from events where ctid in (
           select ctid from events where inserted_at >= $1 and inserted_at < $2
           order by inserted_at, uuid, ctid offset $3 limit $4)
         returning inserted_at),
       late as (select gen_random_uuid() as uuid, min(inserted_at) as moment from deleted, generate_series(1, $5::int) n
         group by n)
       insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, uuid, uuid::text, 'person', '{}', moment, moment from late`,
      [start, end, choice, deleted, late],
    );
  };

  /** Exports an hour, and checks what a run may and must do. */
  const rerun = async (hour: Hour, allow_shrink: boolean, meanwhile: Swap | null = null): Promise<void> => {
    const before = await readSource(hour);
    // Rows that come after an interval was found empty are found by its comparisons.
    const changes = meanwhile !== null && before.size > 0;
    const { latest_error, manifest_key, state } = await hour.reruns.run(
      { allow_shrink, query: hasKeys ? undefined : 'select event, timestamp from events' },
      changes ? { beforeExport: () => swap(meanwhile) } : {},
    );
    const after = await readSource(hour);
    const isComplete = contains(before, hour.bucket) && contains(after, hour.bucket);
    const isSmaller = sizeOf(before) < sizeOf(hour.bucket);
    hour.isHeld = latest_error !== null;
    // Without keys, a row that another one replaced may go unnoticed, but then the older files stay.
    const isExtended = state.replacement?.outcome === 'late_rows_added';
    if (isExtended) {
      expect(hasKeys && !allow_shrink && !isComplete).toBe(true);
      const { files } = await harness.reader.manifestAt(manifest_key ?? '');
      const names = rowsOf(await namesIn(files));
      // Every late row is there as often as in the source, unless a row that was exported has its key. A swap during the run may
      // have deleted one of its copies.
      const late = [...after].filter(([uuid]) => before.has(uuid) && !hour.bucket.has(uuid));
      expect(names).toEqual(unite(hour.bucket, new Map(late)));
      Object.assign(hour, { manifest_key, hasExpired: false, bucket: names, source: after, exported: names });
      return;
    }
    if (allow_shrink || isComplete) expect(latest_error).toBeNull();
    else if (hasKeys || isSmaller) expect(latest_error).toContain('RowsMissingInSource');
    if (hour.isHeld) {
      const numbers = { bucket_rows: sizeOf(hour.bucket), source_rows: sizeOf(after) };
      expect(state.replacement).toMatchObject({ outcome: 'rows_missing', ...numbers });
    } else {
      hour.manifest_key = manifest_key;
      hour.hasExpired = false;
      hour.bucket = after;
      hour.source = after;
      hour.exported = allow_shrink || hasKeys ? after : unite(hour.exported, after);
    }
  };

  /** Compares the hours when that is due. @returns the start times of those that are to be exported again */
  const compareDue = async (): Promise<Set<string>> => {
    await pool.query(
      `update exportd.interval_comparisons set compared_from = compared_from - interval '400 days',
         next_due_at = next_due_at - interval '400 days', early_at = early_at - interval '400 days'`,
    );
    await pool.query('delete from exportd.comparison_budget');
    for (const group of await readComparisonGroups(pool, batchExportId))
      await maintenance.activities().compareIntervals(group);
    const { rows } = await pool.query<{ start: string }>(
      `delete from exportd.interval_repairs where batch_export_id = $1 returning data_interval_start as start`,
      [batchExportId],
    );
    return new Set(rows.map(({ start }) => new Date(start).toISOString()));
  };

  const checkHour = async (hour: Hour): Promise<void> => {
    if (hour.manifest_key === null) return;
    const manifest = await harness.reader.manifestAt(hour.manifest_key);
    const names = await namesIn(manifest.files);
    expect(rowsOf(names)).toEqual(hour.bucket);
    if (hasKeys) expect((await harness.reader.uuidsIn(manifest)).toSorted()).toEqual(names.toSorted());
    expect(contains(rowsOf([...names, ...(await namesIn(manifest.kept))]), hour.exported)).toBe(true);
    const sumOf = (rows: Rows) => sumOfIds(pool, listOf(rows), 'uuid_hash_extended(id::uuid, 0)');
    expect(await readIntervalEntry(pool, batchExportId, hour.interval)).toEqual({
      status: hour.isHeld ? 'held' : 'exported',
      rows: sizeOf(hour.bucket),
      kept_files: manifest.kept.length,
      earlier_files: 0,
      source: await sumOf(hour.source),
      bucket: await sumOf(hour.bucket),
    });
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
    swap,
    run: (position: number, allow_shrink: boolean, meanwhile: Swap | null = null) =>
      rerun(hourAt(position), allow_shrink, meanwhile),
    backfill: async (allow_shrink: boolean) => {
      for (const hour of hours) await rerun(hour, allow_shrink);
    },
    /** Compares the hours with the source, and exports again what is ordered: every hour with late rows. */
    compare: async () => {
      const sources = await Promise.all(hours.map(readSource));
      const ordered = await compareDue();
      for (const [position, hour] of hours.entries()) {
        const source = sources[position] ?? new Map<string, number>();
        const isOrdered = ordered.has(hour.interval.start);
        if (hour.manifest_key !== null && !hour.hasExpired)
          hour.hasExpired = source.size === 0 && hour.bucket.size > 0;
        const isLate = hour.manifest_key !== null && !hour.hasExpired && !contains(hour.bucket, source);
        if (!isLate) expect(isOrdered).toBe(false);
        // A held run is ordered again only if the source has changed since. Without keys, rows may replace others unseen.
        else if (!hour.isHeld && (hasKeys || contains(source, hour.bucket))) expect(isOrdered).toBe(true);
        if (!isOrdered) continue;
        await rerun(hour, false);
        if (!hour.isHeld) expect([...source.keys()].every((uuid) => hour.bucket.has(uuid))).toBe(true);
      }
    },
    cleanUp: () => maintenance.activities().cleanUpExport({ batch_export_id: batchExportId }),
    /** Nothing that was exported has left the bucket, and the ledger says what it has. */
    check: () => Promise.all(hours.map(checkHour)),
    close: async () => {
      for (const client of open) await client.end();
    },
  };
}

/** An export of events whose promise is checked. */
export type PromisedEvents = Awaited<ReturnType<typeof startEvents>>;
