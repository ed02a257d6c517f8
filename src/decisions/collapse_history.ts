import { batchExportDecider, type HistoryDigest } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';
import type { StoredRows } from '../journal/stored_rows.ts';
import { deterministicId, type Journal, type JournalTransaction } from '../journal/journal.ts';
import { isUncounted } from '../projections/backfills.ts';
import { digestEntry, hasHistory } from '../projections/intervals.ts';
import { activeStatuses } from '../projections/runs.ts';
import { scheduledCause } from './advance_schedule.ts';
import { purgeExport, readExportsToPurge } from './purge_exports.ts';
import { collapseStreams, type ExportStream } from './collapse_streams.ts';

/** How long what ended stays, in milliseconds; undefined keeps it. */
export interface HistoryRetention {
  readonly historyMs: number | undefined;
  readonly deletedExportMs: number | undefined;
  /** How long an Idempotency-Key finds the command that it stored. */
  readonly idempotencyKeyMs: number;
  /** The newest runs of each export that stay, whatever their age. */
  readonly newestRuns: number;
}

/** What a call has done. */
interface CollapseCounts {
  readonly intervals: number;
  readonly backfills: number;
  readonly purged_exports: number;
}

/**
 * SQL condition on a row `interval` of the ledger of export $1 that has history: nothing needs its runs any more. Their age is $2
 * milliseconds, and those from the position $3 on stay.
 *
 * What may need a run: its retry, or a person who has to decide about a gap, a failure or a held run (then the interval is not
 * exported, so it has no history in that sense), its backfill, the clean-up of its objects (files of earlier generations, and
 * what could not be deleted), the barrier of a transaction that was open, late rows that a comparison has found. All of that
 * keeps the runs of its interval together.
 */
const isHistory = `not exists (
    select from exportd.batch_export_runs run
    where run.batch_export_id = $1 and run.data_interval_start = interval.data_interval_start
      and run.data_interval_end = interval.data_interval_end
      and (run.position >= $3
        or run.finished_at >= clock_timestamp() - $2::float8 * interval '1 millisecond'
        or exists (select from exportd.backfills owner where owner.id = run.backfill_id)
        or exists (select from exportd.backfill_runs waiting where waiting.run_id = run.id)))
  and exists (select from exportd.batch_export_runs run where run.id = interval.manifest_run_id)
  and not exists (
    select from exportd.destination_objects object
    where object.batch_export_id = $1 and object.data_interval_start = interval.data_interval_start
      and object.data_interval_end = interval.data_interval_end
      and (object.run_id <> interval.manifest_run_id or object.obsolete_at is not null
        or not object.publish_claimed or object.object_type = 'upload'))
  and not exists (
    select from exportd.unsettled_runs unsettled
    where unsettled.batch_export_id = $1 and unsettled.data_interval_start = interval.data_interval_start
      and unsettled.data_interval_end = interval.data_interval_end)
  and not exists (
    select from exportd.interval_repairs repair
    where repair.batch_export_id = $1 and repair.data_interval_start = interval.data_interval_start
      and repair.data_interval_end = interval.data_interval_end)
  and not exists (
    select from exportd.interval_comparisons compared
    where compared.run_id = interval.manifest_run_id and not compared.kept
      and compared.outcome in ('rows_added', 'both'))`;

/** SQL: of the run `run`, the highest generation that it reserved or found. */
const generationOfRun = 'greatest(run.generation, run.adopted_generation)';

/** A time in the ledger, and the start of the interval: where the next batch begins. */
interface Place {
  readonly completed_at: string;
  readonly start: string;
}

/** The milliseconds that a batch should take: appends to the same export wait for it. */
const batchMs = 25;
const [smallestBatch, largestBatch] = [10, 500];

/** How many intervals the next batch has: few at first, then as many as fit the time, on the machine as it is. */
interface BatchSize {
  intervals: number;
}

/**
 * Collapses what is old, in batches, until nothing is left or `isOver`. It can be stopped anywhere and repeated.
 * @param stored what is purged with a deleted export
 */
export async function collapseHistory(
  journal: Journal,
  retention: HistoryRetention,
  stored: readonly StoredRows[],
  isOver: () => boolean,
): Promise<CollapseCounts> {
  const counts = { intervals: 0, backfills: 0, purged_exports: 0 };
  const { pool } = journal;
  if (retention.historyMs !== undefined) {
    const size: BatchSize = { intervals: smallestBatch };
    for (const id of await readExportsWithHistory(pool, retention.historyMs)) {
      if (isOver()) break;
      counts.backfills += await collapseBackfills(journal, id, retention.historyMs, isOver);
      counts.intervals += await collapseIntervals(
        journal,
        id,
        { historyMs: retention.historyMs, newestRuns: retention.newestRuns, size },
        isOver,
      );
    }
    await deleteCommands(pool, retention.historyMs, retention.idempotencyKeyMs);
  }
  if (retention.deletedExportMs !== undefined)
    for (const id of await readExportsToPurge(pool, retention.deletedExportMs))
      if (!isOver() && (await purgeExport(journal, id, stored, isOver))) counts.purged_exports += 1;
  await sweepStreams(pool, isOver);
  return counts;
}

/** Exports that have anything old enough. */
async function readExportsWithHistory(pool: Pool, historyMs: number): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select id from exportd.batch_exports export where exists (
       select from exportd.intervals where batch_export_id = export.id and ${hasHistory}
         and completed_at < statement_timestamp() - $1::float8 * interval '1 millisecond')
     or exists (
       select from exportd.backfills where batch_export_id = export.id
         and finished_at < statement_timestamp() - $1::float8 * interval '1 millisecond')
     order by random()`,
    [historyMs],
  );
  return rows.map(({ id }) => id);
}

/** Collapses the intervals of an export in the order in which they were exported. @returns how many */
async function collapseIntervals(
  journal: Journal,
  batchExportId: string,
  {
    historyMs,
    newestRuns,
    size,
  }: { readonly historyMs: number; readonly newestRuns: number; readonly size: BatchSize },
  isOver: () => boolean,
): Promise<number> {
  let collapsed = 0;
  let after: Place = { completed_at: '-infinity', start: '-infinity' };
  while (!isOver()) {
    const startedAt = performance.now();
    const batch = await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      return collapseBatch(transaction, stream, { historyMs, newestRuns, after, size: size.intervals });
    });
    if (!batch) break;
    collapsed += batch.intervals;
    after = batch.last;
    const took = performance.now() - startedAt;
    const fitting = Math.floor((size.intervals * batchMs) / took);
    // A last batch that is small says little.
    size.intervals = Math.max(smallestBatch, Math.min(largestBatch, fitting, 2 * size.intervals));
    await deleteLogLines(journal.pool, batch.run_ids);
  }
  return collapsed;
}

interface OldInterval extends DataInterval, Place {
  readonly run_ids: readonly string[];
  readonly entry: HistoryDigest['intervals'][number];
}

async function collapseBatch(
  { connection }: JournalTransaction,
  stream: ExportStream,
  {
    historyMs,
    newestRuns,
    after,
    size,
  }: {
    readonly historyMs: number;
    readonly newestRuns: number;
    readonly after: Place;
    readonly size: number;
  },
): Promise<
  { readonly intervals: number; readonly run_ids: readonly string[]; readonly last: Place } | undefined
> {
  const { rows: newest } = await connection.query<{ position: number }>(
    `select position from exportd.batch_export_runs where batch_export_id = $1 order by position desc
     limit 1 offset $2`,
    [stream.id, Math.max(0, newestRuns - 1)],
  );
  const keptFrom = newestRuns === 0 ? Number.MAX_SAFE_INTEGER : (newest[0]?.position ?? 0);
  // The conditions are checked row by row, which PostgreSQL would not do for the whole ledger.
  const { rows: candidates } = await connection.query<OldInterval & { is_history: boolean }>({
    name: 'old-intervals',
    text: `with candidate as materialized (
        select * from exportd.intervals
        where batch_export_id = $1 and ${hasHistory}
          and completed_at < clock_timestamp() - $2::float8 * interval '1 millisecond'
          and (completed_at, data_interval_start) > ($4::timestamptz, $5::timestamptz)
        order by completed_at, data_interval_start limit $6)
      select interval.data_interval_start as start, interval.data_interval_end as end,
        interval.completed_at::text as completed_at, runs.ids as run_ids, ${isHistory} as is_history,
        ${digestEntry({ collapsed_generation: 'runs.generation', collapsed_config_version: 'runs.config_version' })} as entry
      from candidate interval cross join lateral (
        select array_agg(run.id) as ids, max(${generationOfRun}) as generation,
          max(run.config_version) filter (where run.id = interval.manifest_run_id) as config_version
        from exportd.batch_export_runs run
        where run.batch_export_id = $1 and run.data_interval_start = interval.data_interval_start
          and run.data_interval_end = interval.data_interval_end) runs
      order by interval.completed_at, interval.data_interval_start`,
    values: [stream.id, historyMs, keptFrom, after.completed_at, after.start, size],
  });
  const last = candidates.at(-1);
  if (!last) return undefined;
  const found = candidates.filter(({ is_history }) => is_history);
  if (found.length === 0) return { intervals: 0, run_ids: [], last };
  const run_ids = found.flatMap((interval) => interval.run_ids);
  await collapseStreams(connection, stream, {
    intervals: found.map(({ entry }) => entry),
    run_ids,
    backfill_ids: [],
  });
  await deleteScheduleSteps(connection, stream, found);
  for (const table of ['interval_comparisons', 'operator_fault_runs'])
    await connection.query(`delete from exportd.${table} where run_id = any($1)`, [run_ids]);
  return { intervals: found.length, run_ids, last };
}

/**
 * Deletes the steps of the schedule that created the runs, except those that a fold needs: the newest, and the last before a
 * skipped range.
 */
async function deleteScheduleSteps(
  connection: Connection,
  { id }: ExportStream,
  intervals: readonly DataInterval[],
): Promise<void> {
  await connection.query(
    `delete from exportd.journal_events step using exportd.batch_exports export
     where export.id = $1 and step.event_id = any($2) and step.event_type = 'IntervalScheduled'
       and (step.data ->> 'end')::timestamptz <> export.scheduled_until
       and not exists (
         select from exportd.journal_events skipped where skipped.stream_id = $1
           and skipped.event_type = 'IntervalsSkipped' and skipped.data ->> 'start' = step.data ->> 'end')`,
    [id, intervals.map((interval) => deterministicId('batch_export', id, scheduledCause(interval), 0))],
  );
}

/** Backfills of one batch. */
const maxBackfills = 100;

/**
 * SQL: the next backfills of export $1 that ended more than $2 milliseconds ago, after position $3. `is_over`: none of their
 * intervals is still to be exported. The run that was created last tells whether this has changed since. What keeps a backfill is
 * collected first: there is less of it than there are runs.
 */
const endedBackfills = `with needed as materialized (
    select backfill_id from exportd.batch_export_runs where batch_export_id = $1 and retry_at is not null
    union select backfill_id from exportd.batch_export_runs
      where batch_export_id = $1 and status in (${activeStatuses})
    union select run.backfill_id from exportd.intervals interval
      join exportd.batch_export_runs run on run.batch_export_id = $1
        and run.data_interval_start = interval.data_interval_start and run.data_interval_end = interval.data_interval_end
      where interval.batch_export_id = $1 and interval.status <> 'exported'
  )
  select backfill.id, backfill.position, (
      select coalesce(max(run.position), 0) from exportd.batch_export_runs run where run.batch_export_id = $1) as last_run,
    not exists (select from needed where needed.backfill_id = backfill.id)
      and (backfill.status = 'Cancelled' or not exists (
        select from exportd.backfill_runs open where open.backfill_id = backfill.id and ${isUncounted('open')})) as is_over
  from exportd.backfills backfill
  where backfill.batch_export_id = $1 and backfill.position > $3
    and backfill.finished_at < clock_timestamp() - $2::float8 * interval '1 millisecond'
  order by backfill.position limit ${maxBackfills}`;

/**
 * Collapses backfills that ended, and none of whose intervals is still to be exported. Which ones is read before appends have to
 * wait.
 * @returns how many
 */
async function collapseBackfills(
  journal: Journal,
  batchExportId: string,
  historyMs: number,
  isOver: () => boolean,
): Promise<number> {
  let collapsed = 0;
  for (let after = 0; !isOver();) {
    const { rows: ended } = await journal.pool.query<{
      id: string;
      position: number;
      last_run: number;
      is_over: boolean;
    }>(endedBackfills, [batchExportId, historyMs, after]);
    const last = ended.at(-1);
    if (!last) break;
    after = last.position;
    const over = ended.flatMap(({ id, is_over }) => (is_over ? [id] : []));
    if (over.length === 0) continue;
    collapsed += await journal.transaction(async ({ connection, lock }) => {
      const stream = await lock(batchExportDecider, batchExportId);
      const { rows } = await connection.query<{ id: string }>(
        `select id from exportd.backfills where id = any($1) and not exists (
           select from exportd.batch_export_runs where batch_export_id = $2 and position > $3)`,
        [over, batchExportId, last.last_run],
      );
      const backfill_ids = rows.map(({ id }) => id);
      if (backfill_ids.length > 0)
        await collapseStreams(connection, stream, { intervals: [], run_ids: [], backfill_ids });
      return backfill_ids.length;
    });
  }
  return collapsed;
}

/** Events, or log lines, per statement. */
const sweptRows = 1_000;

/** Deletes the log lines of collapsed runs. */
async function deleteLogLines(pool: Pool, runIds: readonly string[]): Promise<void> {
  for (let deleted = sweptRows; deleted === sweptRows;) {
    const { rowCount } = await pool.query(
      `delete from exportd.log_lines where id in (
         select line.id from unnest($1::uuid[]) as run (id) join exportd.log_lines line on line.run_id = run.id
         limit ${sweptRows})`,
      [runIds],
    );
    deleted = rowCount ?? 0;
  }
}

/**
 * Deletes the events of collapsed streams, and the streams, with log lines that a killed process has left. Appends do not wait
 * for it.
 */
async function sweepStreams(pool: Pool, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const { rows: streams } = await pool.query<{ stream_type: string; stream_id: string }>(
      'select stream_type, stream_id from exportd.journal_streams where collapsed_at is not null limit 100',
    );
    if (streams.length === 0) return;
    const ids = streams.map(({ stream_id }) => stream_id);
    const keys = [streams.map(({ stream_type }) => stream_type), ids];
    await deleteLogLines(pool, ids);
    const { rowCount } = await pool.query(
      `delete from exportd.journal_events where global_position in (
         select event.global_position from unnest($1::text[], $2::uuid[]) as stream (stream_type, stream_id)
         join exportd.journal_events event using (stream_type, stream_id) limit ${sweptRows})`,
      keys,
    );
    if ((rowCount ?? 0) < sweptRows)
      await pool.query(
        `delete from exportd.journal_streams stream using unnest($1::text[], $2::uuid[]) as swept (stream_type, stream_id)
         where stream.stream_type = swept.stream_type and stream.stream_id = swept.stream_id`,
        keys,
      );
  }
}

/**
 * Deletes decided commands that are old, and whose Idempotency-Key has expired. Those that have paused an export stay: its
 * condition says who it was.
 */
async function deleteCommands(pool: Pool, historyMs: number, idempotencyKeyMs: number): Promise<void> {
  await pool.query(
    `delete from exportd.commands where id in (
       select id from exportd.commands
       where decided_at is not null and status in ('applied', 'no-op', 'rejected')
         and created_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
         and (status <> 'applied' or name not in ('pause', 'update'))
       order by created_at limit 1000)`,
    [Math.max(historyMs, idempotencyKeyMs)],
  );
}
