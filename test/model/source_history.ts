import { targetChecks as targets } from '../../src/temporal/capabilities.ts';
import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import type pg from 'pg';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { batchExportDecider, type Model } from '../../src/domain/batch_export.ts';
import { checkRunBarrier, countRows } from '../../src/export/count.ts';
import { toApplicationFailure } from '../../src/failures/classify_error.ts';
import type { VerificationReport } from '../../src/verify/report.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { definitionOf } from '../domain/definition.ts';
import type { IndependentReader } from '../encoding/duckdb.ts';
import type { ExportHarness } from '../export/export_harness.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { readBucket, type ReadInterval, type ReadRow } from './bucket_reader.ts';
import { createSourceDatabase } from './source_database.ts';
import { readComparisonGroups } from '../maintenance/read_comparisons.ts';

const hourMs = 3_600_000;
const firstHour = Date.parse('2026-01-01T10:00:00.000Z');
const hourCount = 3;
const hours = Array.from({ length: hourCount }, (_, hour) => ({
  start: new Date(firstHour + hour * hourMs).toISOString(),
  end: new Date(firstHour + (hour + 1) * hourMs).toISOString(),
}));

/** A change of the source, as it could be written in a script. */
export interface Change {
  readonly kind: 'insert' | 'update' | 'delete' | 'merge';
  /** Of the rows that there are, in their order. */
  readonly choice: number;
  readonly rows: number;
  /** Within the hour. */
  readonly second: number;
  /** By how many hours the time of the change is earlier: by the clock of a client, or of a publisher. */
  readonly late: number;
}

/** What a step of a history does. All of them can be taken at any time. */
export type Step =
  | { readonly step: 'change'; readonly change: Change }
  /** Inserts rows in a transaction that stays open. */
  | { readonly step: 'begin'; readonly change: Change }
  | {
      readonly step:
        | 'commit'
        | 'rollback'
        | 'detach'
        | 'attach'
        | 'back up'
        | 'restore'
        | 'fail over'
        | 'maintain';
    }
  /** The clock of the source is this many hours back from now on. */
  | { readonly step: 'set the clock back'; readonly hours: number }
  /** The hour ends and is exported. A change happens meanwhile. */
  | { readonly step: 'end the hour'; readonly meanwhile: Change | null }
  | { readonly step: 'export again'; readonly hour: number; readonly meanwhile: Change | null };

/** A row of the source: an event, or the newest state of a distinct id. */
interface SourceRow {
  readonly id: string;
  readonly at: number;
  readonly number: number | null;
}

/** A step as a line of a script. */
export const lineOf = (step: Step): string => `  ${JSON.stringify(step)},`;

/** One export of a source that misbehaves, its bucket, and what must hold between them in the end. */
export async function startHistory(
  shared: ExportHarness,
  duckDb: IndependentReader,
  { model, config }: { readonly model: Model; readonly config: object },
) {
  const database = await createSourceDatabase(shared.settings);
  const harness: ExportHarness = { ...shared, source: { ...shared.source, ...database.source } };
  const maintenance = createMaintenanceHarness(harness);
  const { pool: control } = shared.database;
  const { signal } = new AbortController();
  const batchExportId = randomUUID();
  await control.query('delete from exportd.interval_comparisons; delete from exportd.comparison_budget');
  await harness.journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, batchExportId);
    const definition = definitionOf({ model, end_at: hours.at(-1)?.end ?? null });
    const data = { team_id: 1, definition, scheduled_until: hours[0]?.start ?? '', paused: false };
    await stream.append('created', [{ type: 'BatchExportCreated', data }]);
  });

  let openHour = 0;
  let clock = 0;
  let changes = 0;
  let detached: { readonly name: string; readonly bounds: string } | null = null;
  let hasBackup = false;
  /** What the source forgot: rows that it lost with a restore may stay in the bucket. */
  let wasRestored = false;
  const writers: pg.Client[] = [];
  const manifests = new Set<number>();

  const query = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
    (await database.pool().query<Row>(sql, values)).rows;

  /** The time of a change in microseconds, which no other change has. */
  const timeOf = ({ second, late }: Change): string => {
    const hour = Math.min(openHour, hourCount - 1) - clock - late;
    changes += 1;
    return `timestamptz '${new Date(firstHour + hour * hourMs).toISOString()}' + interval '${second} seconds ${changes} microseconds'`;
  };

  const insertRows = async (client: Pick<pg.ClientBase, 'query'>, change: Change): Promise<void> => {
    const time = timeOf(change);
    // Events of two months are in two partitions.
    const month = detached === null && change.choice % 2 === 1 ? '1 month' : '0 months';
    await client.query(
      model === 'events'
        ? `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
           select 1, gen_random_uuid(), 'e', 'd', '{}', date_trunc('month', now()) + interval '${month}', ${time}
           from generate_series(1, ${change.rows})`
        : `with person as (
             insert into persons (team_id, id, properties, version, created_at, updated_at)
             select 1, gen_random_uuid(), '{"number": ${changes}}', 1, ${time}, ${time}
             from generate_series(1, ${change.rows}) returning id)
           insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
           select 1, (array['a', 'ä', '😀', '\ufffd'])[1 + row_number() over () % 4] || ${changes} || '-' || row_number() over (),
             id, 1, ${time} from person`,
    );
  };

  const changeEvents = async (change: Change): Promise<void> => {
    if (change.kind !== 'delete') await insertRows(database.pool(), change);
    else
      await query(
        `delete from events where uuid in (select uuid from events order by inserted_at, uuid offset $1 limit $2)`,
        change.choice,
        change.rows,
      );
  };
  const changePersons = async (change: Change): Promise<void> => {
    const { kind, choice } = change;
    if (kind === 'insert') {
      await insertRows(database.pool(), change);
      return;
    }
    const ids = (await query<{ id: string }>('select id from persons order by created_at, id')).map(
      ({ id }) => id,
    );
    const [id, other] = [ids[choice % Math.max(1, ids.length)], ids[(choice + 1) % Math.max(1, ids.length)]];
    if (id === undefined || other === undefined) return;
    const time = timeOf(change);
    if (kind === 'update')
      await query(
        `update persons set updated_at = ${time}, version = version + 1, properties = '{"number": ${changes}}' where id = $1`,
        id,
      );
    else if (kind === 'merge')
      await query(
        `update person_distinct_ids mapping set person_id = $2, version = version + 1, updated_at = ${time} where person_id = $1`,
        id,
        other,
      );
    else {
      await query('delete from person_distinct_ids where person_id = $1', id);
      await query('delete from persons where id = $1', id);
    }
  };
  const apply = (change: Change): Promise<void> =>
    model === 'events' ? changeEvents(change) : changePersons(change);

  /** Exports an hour as the workflow does, without waiting for open transactions. A held run ends `Failed`. */
  const exportHour = async (hour: number, meanwhile: Change | null): Promise<void> => {
    const of = hours[hour];
    if (!of) return;
    const { run_id } = await harness.createRun({ batchExportId, model, config, of });
    const attempt = harness.attempt({ source: database.source });
    try {
      const { state, counted, blocked_by } = await checkRunBarrier(
        harness,
        { run_id, state: { phase: 'settling' } },
        signal,
      );
      const isBlocked = state.phase !== 'open' && state.phase !== 'settling';
      const rows =
        counted ??
        (await countRows(
          harness,
          { run_id, settled: false, blocked_by, ...(isBlocked && { barrier: state }) },
          signal,
        ));
      if (rows.check_replacement) await attempt.checkReplacement({ run_id });
      if (meanwhile && rows.rows > 0) await apply(meanwhile);
      if (rows.rows > 0) await attempt.exportInterval({ run_id });
      await attempt.publishManifest({ run_id });
      manifests.add(hour);
    } catch (error) {
      const { type, message } = toApplicationFailure(error);
      if (type !== 'RowsMissingInSource') throw error;
      await endRun(harness.journal, quickPolicies(), run_id, {
        status: 'Failed',
        latest_error: `${type}: ${message}`,
      });
    }
  };

  /** Lets all that is due happen: barriers, comparisons, and the exports that they request. */
  const maintain = async (): Promise<number> => {
    const activities = maintenance.activities();
    await activities.checkBarriers();
    await activities.settleRuns({ batch_export_id: batchExportId });
    await control.query(
      `update exportd.interval_comparisons set compared_from = compared_from - interval '400 days',
         next_due_at = next_due_at - interval '400 days', early_at = early_at - interval '400 days'
       where batch_export_id = $1`,
      [batchExportId],
    );
    await control.query('delete from exportd.comparison_budget');
    for (const group of await readComparisonGroups(control, batchExportId))
      await activities.compareIntervals(group);
    const { rows: ordered } = await control.query<{ start: string }>(
      'delete from exportd.interval_repairs where batch_export_id = $1 returning data_interval_start as start',
      [batchExportId],
    );
    for (const { start } of ordered)
      await exportHour(
        hours.findIndex((hour) => hour.start === new Date(start).toISOString()),
        null,
      );
    await activities.cleanUpExport({ batch_export_id: batchExportId });
    return ordered.length;
  };

  const endTransaction = async (by: 'commit' | 'rollback'): Promise<void> => {
    const writer = writers.shift();
    await writer?.query(by);
    await writer?.end();
  };
  const attach = async (): Promise<void> => {
    if (detached) await query(`alter table events attach partition ${detached.name} ${detached.bounds}`);
    detached = null;
  };

  const take = async (step: Step): Promise<void> => {
    const isQuiet = writers.length === 0;
    switch (step.step) {
      case 'change':
        return apply(step.change);
      case 'begin': {
        const writer = await database.connect();
        writers.push(writer);
        await writer.query('begin');
        return insertRows(writer, { ...step.change, kind: 'insert' });
      }
      case 'commit':
      case 'rollback':
        return endTransaction(step.step);
      case 'detach': {
        // Partitions cannot be detached while a transaction writes them.
        if (model === 'persons' || detached || !isQuiet) return undefined;
        const [partition] = await query<{ name: string; bounds: string }>(
          `select relid::regclass::text as name, pg_get_expr(relpartbound, relid) as bounds
           from pg_partition_tree('events') join pg_class on oid = relid
           where relid = 'events'::regclass or relname = to_char(now() + interval '1 month', '"events_"YYYY_MM')
           order by level desc limit 1`,
        );
        if (!partition || partition.name === 'events') return undefined;
        await query(`alter table events detach partition ${partition.name}`);
        detached = partition;
        return undefined;
      }
      case 'attach':
        return isQuiet ? attach() : undefined;
      case 'back up':
        if (!isQuiet || detached) return undefined;
        hasBackup = true;
        return database.backUp();
      case 'restore':
        if (!isQuiet || !hasBackup) return undefined;
        detached = null;
        wasRestored = true;
        return database.replace('backup');
      case 'fail over':
        // The transactions of the former primary end with it.
        while (writers.length > 0) await endTransaction('rollback');
        return database.replace('copy');
      case 'set the clock back':
        clock = step.hours;
        return undefined;
      case 'maintain':
        await maintain();
        return undefined;
      case 'end the hour':
        if (openHour === hourCount) return undefined;
        openHour += 1;
        return exportHour(openHour - 1, step.meanwhile);
      case 'export again':
        return step.hour < openHour ? exportHour(step.hour, step.meanwhile) : undefined;
    }
  };

  /** Ends everything that is open, exports all hours, and lets maintenance find what is late. */
  const settle = async (): Promise<void> => {
    while (writers.length > 0) await endTransaction('commit');
    await attach();
    while (openHour < hourCount) await take({ step: 'end the hour', meanwhile: null });
    for (let round = 0; (await maintain()) > 0; round += 1)
      if (round === 5) throw new Error('Maintenance does not end.');
  };

  const readSource = (): Promise<SourceRow[]> =>
    query<SourceRow>(
      `select id, (extract(epoch from at) * 1000000)::float8 as at, number from (${
        model === 'events'
          ? 'select uuid::text as id, inserted_at as at, null::int as number from events'
          : `select distinct_id as id, greatest(person.updated_at, mapping.updated_at) as at, (properties ->> 'number')::int as number
             from person_distinct_ids mapping join persons person on person.id = mapping.person_id`
      }) as row where at >= $1 and at < $2`,
      hours[0]?.start,
      hours.at(-1)?.end,
    );
  /** Hours whose late rows wait for a decision, or that the source has emptied, which ends their comparisons. */
  const reportedHours = async (): Promise<Set<string>> => {
    const { rows } = await control.query<{ start: string }>(
      `select data_interval_start as start from exportd.intervals where batch_export_id = $1 and status = 'held'
       union select data_interval_start from exportd.interval_comparisons
       where batch_export_id = $1 and outcome = 'source_expired'`,
      [batchExportId],
    );
    return new Set(rows.map(({ start }) => new Date(start).toISOString()));
  };

  const keyOf = ({ id, at }: Pick<SourceRow, 'id' | 'at'>): string => `${id} ${at}`;
  const hourOf = ({ at }: Pick<SourceRow, 'at'>): string =>
    new Date(firstHour + Math.floor((at / 1000 - firstHour) / hourMs) * hourMs).toISOString();

  /** What the reader of the bucket finds, compared with the source. */
  const compareReader = (read: readonly ReadInterval[], source: readonly SourceRow[]) => {
    const rows = read.flatMap((interval) => interval.rows);
    const stateOf = (row: SourceRow): string => `${keyOf(row)} ${row.number}`;
    const named = new Set([...rows, ...read.flatMap(({ earlier }) => earlier)].map(stateOf));
    const inSource = new Set(source.map(keyOf));
    const keys = rows.map(keyOf);
    return {
      missing: source.filter((row) => !named.has(stateOf(row))),
      duplicate: keys.filter((key, index) => keys.indexOf(key) !== index),
      unexpected: rows.filter((row) => !inSource.has(keyOf(row))),
      misplaced: read.flatMap(({ start, rows: own, earlier }) =>
        [...own, ...earlier].filter((row) => hourOf(row) !== start),
      ),
    };
  };

  const verify = (): Promise<VerificationReport> =>
    verifyBatchExport(
      {
        pool: control,
        keyRing: harness.keyRing,
        settings: harness.settings,
        sourceUrl: database.url(),
        targets,
        onError: () => undefined,
      },
      { batchExportId, deep: true },
    );

  /** The newest state of each distinct id by its versions, which grow whatever the clocks do. */
  const newestOf = (rows: readonly ReadRow[]): Map<string, ReadRow> => {
    const newest = new Map<string, ReadRow>();
    for (const row of rows) {
      const known = newest.get(row.id);
      const [mapping, person] = row.versions;
      const isNewer =
        !known ||
        mapping > known.versions[0] ||
        (mapping === known.versions[0] && person > known.versions[1]);
      if (isNewer) newest.set(row.id, row);
    }
    return newest;
  };

  /** Every row of the source is in the bucket once, and `verify --deep` says what the reader sees. */
  const check = async (): Promise<void> => {
    const [source, read, reported, report] = [
      await readSource(),
      await readBucket(shared.bucket, duckDb, batchExportId),
      await reportedHours(),
      await verify(),
    ];
    const found = compareReader(read, source);
    expect(read).toHaveLength(hourCount);
    expect(found.missing.filter((row) => !reported.has(hourOf(row)))).toEqual([]);
    expect({ duplicate: found.duplicate, misplaced: found.misplaced }).toEqual({
      duplicate: [],
      misplaced: [],
    });
    if (model === 'persons' && !wasRestored) {
      const newest = newestOf(read.flatMap(({ rows, earlier }) => [...rows, ...earlier]));
      for (const { id, number } of source) expect(newest.get(id)).toMatchObject({ id, number });
    }
    const unexpected =
      model === 'events' ? found.unexpected.length : await countUnexpectedPersons(found.unexpected);
    expect(report.totals).toMatchObject({
      missing: found.missing.length,
      unexpected,
      duplicate: 0,
      mismatched: 0,
      gaps: 0,
    });
    expect(report.ok).toBe(found.missing.length === 0 && unexpected === 0);
  };

  /** A state that the source has replaced by a newer one is no finding. */
  const countUnexpectedPersons = async (rows: readonly ReadRow[]): Promise<number> => {
    const states = await query<{ id: string; at: number }>(
      `select distinct_id as id, (extract(epoch from greatest(person.updated_at, mapping.updated_at)) * 1000000)::float8 as at
       from person_distinct_ids mapping left join persons person on person.id = mapping.person_id`,
    );
    const times = new Map(states.map(({ id, at }) => [id, at]));
    return rows.filter(({ id, at }) => (times.get(id) ?? -1) < at).length;
  };

  return {
    take,
    settle,
    check,
    close: async (): Promise<void> => {
      for (const writer of writers) await writer.end();
      await database.drop();
    },
  };
}
