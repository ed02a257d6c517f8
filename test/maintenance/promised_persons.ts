import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import type { Manifest } from '../../src/destination/manifest.ts';
import type { ExportHarness } from '../export/export_harness.ts';
import { createReruns } from '../export/rerun.ts';
import { readIntervalEntry, sumOfIds } from './interval_entry.ts';
import type { MaintenanceHarness } from './maintenance_harness.ts';

/** A state of a distinct id. */
interface State {
  readonly distinct_id: string;
  /** Milliseconds. */
  readonly at: number;
  /** The property `number`, which each update of a person increases. */
  readonly number: number;
}

/** A change of one person. */
export interface PersonChange {
  readonly choice: number;
  readonly kind: 'update' | 'mark as deleted' | 'delete' | 'delete a distinct id' | 'merge';
  /** How much later than its current state the new one is. An hour moves it to the next interval. */
  readonly seconds: number;
}

/** An hour of the export, and what its manifest must have. */
interface Hour {
  readonly interval: { readonly start: string; readonly end: string };
  readonly reruns: ReturnType<typeof createReruns>;
  /** The manifest; null before the first. */
  manifest_key: string | null;
  /** The states of its files. */
  files: readonly State[];
  /** The states that were exported since shrinking was allowed. */
  exported: readonly State[];
}

/** The newest state of each distinct id. */
const newestOf = (states: readonly State[]): Map<string, State> => {
  const newest = new Map<string, State>();
  for (const state of states)
    if (state.at >= (newest.get(state.distinct_id)?.at ?? 0)) newest.set(state.distinct_id, state);
  return newest;
};

const byId = (states: readonly State[]): State[] =>
  states.toSorted((one, other) => one.distinct_id.localeCompare(other.distinct_id));

/** Hours of one export of persons: source, bucket, and what must hold between them after each step. */
export async function startPersons(
  harness: ExportHarness,
  maintenance: MaintenanceHarness,
  intervals: readonly Hour['interval'][],
  { rangeRows }: { readonly rangeRows: number },
) {
  const { pool } = harness.database;
  const batchExportId = randomUUID();
  await pool.query('delete from persons; delete from person_distinct_ids');
  await maintenance.createExport(batchExportId, 1, 'persons');
  const hours = intervals.map((interval): Hour => ({
    interval,
    reruns: createReruns(harness, interval, { batchExportId, rangeRows }),
    manifest_key: null,
    files: [],
    exported: [],
  }));
  const hourAt = (position: number): Hour => {
    const hour = hours[position];
    if (!hour) throw new RangeError(`There is no hour ${position}.`);
    return hour;
  };

  const readSource = async ({ interval }: Hour): Promise<State[]> => {
    const { rows } = await pool.query<State>(
      `select * from (
         select distinct_id, extract(epoch from greatest(person.updated_at, mapping.updated_at))::float8 * 1000 as at,
           (person.properties ->> 'number')::int as number
         from person_distinct_ids mapping join persons person on person.id = mapping.person_id) state
       where at >= $1 and at < $2`,
      [Date.parse(interval.start), Date.parse(interval.end)],
    );
    return rows;
  };
  const statesIn = async (files: readonly { readonly key: string }[]): Promise<State[]> => {
    const texts = await Promise.all(files.map(({ key }) => harness.reader.textOf(key)));
    const lines = texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
    return lines.map((line) => {
      const row = JSON.parse(line) as { distinct_id: string; _inserted_at: string; properties: unknown };
      const { number } = row.properties as { number: number };
      return { distinct_id: row.distinct_id, at: Date.parse(row._inserted_at), number };
    });
  };

  /** Changes one person, or one of its distinct ids, always to a newer state. */
  const change = async ({ choice, kind, seconds }: PersonChange): Promise<void> => {
    const { rows } = await pool.query<{
      distinct_id: string;
      person_id: string;
      at: string;
      other_id: string;
    }>(
      `select distinct_id, person_id,
         (select max(greatest(person.updated_at, mapping.updated_at)) from person_distinct_ids mapping
           join persons person on person.id = mapping.person_id where person.id = chosen.person_id) as at,
         (select id from persons where id <> chosen.person_id order by id limit 1) as other_id
       from person_distinct_ids chosen order by distinct_id`,
    );
    const chosen = rows[choice % Math.max(1, rows.length)];
    if (!chosen) return;
    const { distinct_id, person_id, other_id } = chosen;
    const at = new Date(Date.parse(chosen.at) + seconds * 1000);
    switch (kind) {
      case 'update':
      case 'mark as deleted':
        await pool.query(
          `update persons set updated_at = $2, is_deleted = $3,
             properties = properties || jsonb_build_object('number', (properties ->> 'number')::int + 1) where id = $1`,
          [person_id, at, kind === 'mark as deleted'],
        );
        return;
      case 'delete':
        await pool.query('delete from person_distinct_ids where person_id = $1', [person_id]);
        await pool.query('delete from persons where id = $1', [person_id]);
        return;
      case 'delete a distinct id':
        await pool.query('delete from person_distinct_ids where distinct_id = $1', [distinct_id]);
        return;
      case 'merge':
        await pool.query(
          `update person_distinct_ids mapping set person_id = person.id, version = mapping.version + 1,
             updated_at = greatest($2::timestamptz, person.updated_at + interval '1 second')
           from persons person where mapping.distinct_id = $1 and person.id = $3`,
          [distinct_id, at, other_id],
        );
    }
  };

  /** Exports an hour. Persons are never held. */
  const rerun = async (hour: Hour, allow_shrink: boolean, meanwhile: PersonChange | null = null) => {
    const before = await readSource(hour);
    // An interval that was found empty is not read again.
    const changes = meanwhile !== null && before.length > 0;
    const { latest_error, manifest_key } = await hour.reruns.run(
      { model: 'persons', allow_shrink },
      changes ? { beforeExport: () => change(meanwhile) } : {},
    );
    expect(latest_error).toBeNull();
    hour.manifest_key = manifest_key;
    hour.files = await readSource(hour);
    hour.exported = [...(allow_shrink ? [] : hour.exported), ...hour.files];
  };

  const checkLedger = async (hour: Hour, { earlier }: Manifest): Promise<void> => {
    const ids = hour.files.map(({ distinct_id }) => distinct_id);
    const sum = await sumOfIds(pool, ids, 'hashtextextended(id collate "C", 0)');
    expect(await readIntervalEntry(pool, batchExportId, hour.interval)).toEqual({
      status: 'exported',
      rows: ids.length,
      kept_files: 0,
      earlier_files: earlier.length,
      source: sum,
      bucket: sum,
    });
  };

  return {
    /** Inserts persons with one or two distinct ids each. */
    insert: async (persons: number, distinctIds: number, second: number): Promise<void> => {
      await pool.query(
        `with person as (
           insert into persons (team_id, id, properties, version, is_deleted, created_at, updated_at)
           select 1, gen_random_uuid(), '{"number": 1}', 0, false, moment, moment
           from (select $1::timestamptz + make_interval(secs => $2) as moment) m, generate_series(1, $3::int)
           returning id, updated_at)
         insert into person_distinct_ids (team_id, distinct_id, person_id, version, is_deleted, updated_at)
         select 1, gen_random_uuid()::text, id, 0, false, updated_at from person, generate_series(1, $4::int)`,
        [hourAt(0).interval.start, second, persons, distinctIds],
      );
    },
    change,
    run: (position: number, allow_shrink: boolean, meanwhile: PersonChange | null = null) =>
      rerun(hourAt(position), allow_shrink, meanwhile),
    backfill: async (allow_shrink: boolean) => {
      for (const hour of hours) await rerun(hour, allow_shrink);
    },
    cleanUp: () => maintenance.activities().cleanUpExport({ batch_export_id: batchExportId }),
    /** The newest exported state of each distinct id is in a current manifest, at most once in its files. */
    check: async (): Promise<void> => {
      const named: State[] = [];
      for (const hour of hours) {
        if (hour.manifest_key === null) continue;
        const manifest = await harness.reader.manifestAt(hour.manifest_key);
        const files = await statesIn(manifest.files);
        expect(byId(files)).toEqual(byId(hour.files));
        await checkLedger(hour, manifest);
        named.push(...files, ...(await statesIn(manifest.earlier)));
      }
      const promised = newestOf(hours.flatMap(({ exported }) => exported));
      expect(newestOf(named)).toEqual(promised);
    },
  };
}

/** An export of persons whose promise is checked. */
export type PromisedPersons = Awaited<ReturnType<typeof startPersons>>;
