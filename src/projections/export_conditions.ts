import {
  dueRanges,
  type LiveBatchExport,
  nextIntervalEnd,
  type UndecidedRange,
  undecidedRanges,
} from '../domain/batch_export.ts';
import { bucketName } from '../domain/circuit.ts';
import { type Condition, conditionOf, type OpenCause, openCausesOf } from '../domain/condition.ts';
import { type Coverage, type CoverageFacts, coverageOf, holesOf } from '../domain/coverage.ts';
import {
  countIntervals,
  type DataInterval,
  intervalContaining,
  nominalLengthMs,
} from '../domain/intervals.ts';
import { activeRunStatuses, type RunStatus } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import { isUncounted } from './backfills.ts';
import { checkedIntervals, differsNow } from './interval_checks.ts';
import { waitsForSlot, waitsForTurn } from './runs.ts';
import {
  type AffectedIntervals,
  type ConditionFacts,
  type FailedIntervals,
  workerSilenceMs,
} from '../domain/condition_facts.ts';

/** The number of gaps in a lag; the newest are kept. */
const maxGaps = 100;
/** The number of ranges that a condition names. */
const maxRanges = 10;

/** How far behind an export is. */
interface Lag {
  /** Ended intervals of the schedule without a Completed run, and all gaps. */
  readonly intervals: number;
  readonly seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: {
    readonly data_interval_start: string;
    readonly data_interval_end: string;
    readonly run_id: string;
    readonly status: RunStatus;
  }[];
}

/** How a live export does. */
export interface ExportStanding {
  readonly condition: Condition;
  /** Null if this version cannot read the schedule. */
  readonly lag: Lag | null;
  readonly open_causes: readonly OpenCause[];
  /** Null if this version cannot read the schedule. The condition has its newest ranges. */
  readonly coverage: Coverage | null;
  /** The state of the schedule, and the time of the database, that they follow from. */
  readonly state: LiveBatchExport;
  readonly now: string;
}

/**
 * Reads the lag and the condition of each live export, by id. `onUnreadable` is called for those whose schedule this version
 * cannot read. It needs five statements for any number of exports and intervals: intervals without runs are counted from
 * the schedule's state and the database's clock. Without new events, outages or people, the result changes only when an
 * interval ends or is late.
 */
export async function readStandings(
  pool: Pool,
  ids: readonly string[],
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ReadonlyMap<string, ExportStanding>> {
  const exports = await readExports(pool, ids);
  const schedules = exports.map((row) => scheduleOf(row, onUnreadable));
  const [ledgers, troubles, times, differing] = await Promise.all([
    readLedgers(pool, schedules),
    readTroubles(pool, ids),
    readTime(pool, ids),
    readDiffering(pool, ids),
  ]);
  return new Map(
    schedules.map((schedule) => {
      const { row } = schedule;
      const ledger = ledgers.get(row.id);
      const coverage = coverageOfSchedule(schedule, times.get(row.id));
      const facts = factsOf(schedule, ledger, {
        troubles: troubles.get(row.id),
        coverage,
        differing: differing.get(row.id),
      });
      const lag = schedule.is_readable ? lagOf(schedule, ledger) : null;
      return [
        row.id,
        {
          condition: conditionOf(facts),
          lag,
          open_causes: openCausesOf(facts),
          coverage,
          state: row.state,
          now: row.now,
        },
      ];
    }),
  );
}

/** Reads the condition of one export; undefined if it is not live. */
export const readCondition = async (pool: Pool, id: string): Promise<Condition | undefined> =>
  (await readStandings(pool, [id], () => undefined)).get(id)?.condition;

/** An export with what is known of it besides its intervals. */
interface ExportRow {
  readonly id: string;
  readonly team_id: number;
  readonly state: LiveBatchExport;
  readonly now: string;
  readonly pause: {
    readonly at: string;
    readonly by: string | null;
    readonly failed_runs: number | null;
  } | null;
  readonly active_runs: number;
  /** Runs of unfinished backfills that have not ended, created or not; and the scheduled ones. */
  readonly backfill_runs: number;
  readonly scheduled_runs: number;
  readonly circuit:
    | (Omit<NonNullable<ConditionFacts['circuit']>, 'bucket'> & {
        readonly bucket: Readonly<Record<string, unknown>>;
      })
    | null;
  readonly operator_fault: ConditionFacts['operator_fault'];
  readonly source_fault: ConditionFacts['source_fault'];
  readonly temporal_fault: ConditionFacts['temporal_fault'];
  readonly workers_incident: string | null;
  readonly target_fault: { readonly message: string; readonly found_at: string } | null;
  readonly worker_seen_at: string | null;
  readonly taken_slots: ConditionFacts['taken_slots'];
  readonly taken_turns: ConditionFacts['taken_turns'];
}

/** The type of the operator's fault that workers store while the source does not respond. */
export const sourceUnavailable = 'SourceUnavailable';

const active = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/** SQL: the time after which a worker that has not reported is missed. */
const workerSilence = `interval '${workerSilenceMs} milliseconds'`;

/** SQL: a time in the form of responses. */
const isoTime = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** SQL: the open outage of a dependency, which all exports have. */
const openOutage = (dependency: string): string => `select incident_id, type, message, opened_at
  from exportd.operator_faults where dependency = '${dependency}' and resolved_at is null order by opened_at limit 1`;

/** SQL: an operator's fault as `ConditionFacts` has it; null without one. */
const faultFields = (
  row: string,
): string => `case when ${row}.type is not null then json_build_object('type', ${row}.type,
  'message', ${row}.message, 'opened_at', ${isoTime(`${row}.opened_at`)}, 'incident_id', ${row}.incident_id) end`;

async function readExports(pool: Pool, ids: readonly string[]): Promise<ExportRow[]> {
  const { rows } = await pool.query<ExportRow>(
    `with active_run as materialized (
       select id, batch_export_id, config_version, backfill_id, ${waitsForSlot('run')} as waits_for_slot,
         ${waitsForTurn('run')} as waits_for_turn
       from exportd.batch_export_runs run where batch_export_id = any($1) and status in (${active})
     ), runs as (
       select batch_export_id, count(*)::int as active_runs,
         count(*) filter (where backfill_id is null)::int as scheduled_runs,
         bool_or(waits_for_slot and backfill_id is null) as wait_for_slot,
         bool_or(waits_for_turn and backfill_id is null) as wait_for_turn
       from active_run group by 1
     ), backfills as (
       select batch_export_id,
         sum(total_runs - completed_runs - failed_runs - cancelled_runs)::int as backfill_runs
       from exportd.backfills where batch_export_id = any($1) and finished_at is null group by 1
     ), fault as (
       select distinct on (run.batch_export_id) run.batch_export_id, fault.type, fault.message, fault.opened_at,
         fault.incident_id
       from active_run run
       join exportd.operator_fault_runs waiting on waiting.run_id = run.id and waiting.resumed_at is null
       join exportd.operator_faults fault on fault.id = waiting.fault_id and fault.resolved_at is null
       order by run.batch_export_id, fault.opened_at
     ), used_config as (
       select id as batch_export_id, config_version from exportd.batch_exports where id = any($1)
       union select batch_export_id, config_version from active_run
     ), circuit as (
       select distinct on (used.batch_export_id) used.batch_export_id, circuit.error, circuit.opened_at,
         circuit.incident_id, config.config
       from used_config used
       join exportd.destination_configs config
         on config.batch_export_id = used.batch_export_id and config.version = used.config_version
       join exportd.destination_circuits circuit
         on circuit.destination = config.circuit and circuit.opened_at is not null
       order by used.batch_export_id, circuit.opened_at
     ), source as (${openOutage('source')}
     ), temporal as (${openOutage('temporal')}
     ), workers as (${openOutage('workers')}
     ), worker as materialized (select max(seen_at) as seen_at from exportd.worker_heartbeats
     ), running as materialized (
       -- The workers that run now, and whether none has a free slot, or turn.
       select sum(export_slots)::int as slots, count(*)::int as workers,
         bool_and(coalesce(slots_taken_at > statement_timestamp() - ${workerSilence}, false)) as slots_are_taken,
         bool_and(coalesce(turns_taken_at > statement_timestamp() - ${workerSilence}, false)) as turns_are_taken
       from exportd.worker_heartbeats where seen_at > statement_timestamp() - ${workerSilence})
     select export.id, export.team_id, stream.state,
       ${isoTime('statement_timestamp()')} as now,
       case when pause.recorded_at is not null then json_build_object('at', ${isoTime('pause.recorded_at')},
         'by', pause.email, 'failed_runs', jsonb_array_length(pause.data->'run_ids')) end as pause,
       coalesce(runs.active_runs, 0) as active_runs, coalesce(runs.scheduled_runs, 0) as scheduled_runs,
       coalesce(backfills.backfill_runs, 0) as backfill_runs,
       case when circuit.opened_at is not null then json_build_object('error', circuit.error,
         'opened_at', ${isoTime('circuit.opened_at')}, 'incident_id', circuit.incident_id,
         'bucket', jsonb_build_object('bucket_name', circuit.config -> 'bucket_name',
           'endpoint_url', circuit.config -> 'endpoint_url')) end as circuit,
       ${faultFields('fault')} as operator_fault, ${faultFields('source')} as source_fault,
       ${faultFields('temporal')} as temporal_fault, workers.incident_id as workers_incident,
       case when broken.found_at is not null then json_build_object('message', broken.message,
         'found_at', ${isoTime('broken.found_at')}) end as target_fault,
       ${isoTime('worker.seen_at')} as worker_seen_at,
       case when runs.wait_for_slot and running.slots_are_taken then
         json_build_object('slots', running.slots, 'workers', running.workers) end as taken_slots,
       case when runs.wait_for_turn and running.turns_are_taken then running.workers end as taken_turns
     -- Not id = any($1): a nested loop sorts the ids once more for each export.
     from unnest($1::uuid[]) as wanted (id) join exportd.batch_exports export on export.id = wanted.id
     join exportd.stream_states stream on stream.stream_type = 'batch_export' and stream.stream_id = export.id
     left join runs on runs.batch_export_id = export.id
     left join backfills on backfills.batch_export_id = export.id
     left join circuit on circuit.batch_export_id = export.id
     left join fault on fault.batch_export_id = export.id
     left join lateral (
       -- Of the target that the export writes to now.
       select fault.message, fault.found_at from exportd.target_faults fault
       join exportd.destination_configs found
         on found.batch_export_id = fault.batch_export_id and found.version = fault.config_version
       join exportd.destination_configs used
         on used.batch_export_id = export.id and used.version = export.config_version
       where fault.batch_export_id = export.id and (
         found.config ->> 'table_format', found.config ->> 'bucket_name', found.config ->> 'endpoint_url',
         found.config ->> 'prefix') is not distinct from (
         used.config ->> 'table_format', used.config ->> 'bucket_name', used.config ->> 'endpoint_url',
         used.config ->> 'prefix')
     ) broken on true
     left join source on true
     left join temporal on true
     left join workers on true
     left join worker on true
     left join running on true
     left join lateral (
       select event.recorded_at, event.data, users.email from exportd.journal_events event
       left join exportd.commands command
         on command.id = case when event.cause like 'command:%' then substr(event.cause, 9, 36)::uuid end
       left join exportd.users users on users.id = command.user_id
       where export.paused and event.stream_type = 'batch_export' and event.stream_id = export.id
         and event.event_type not in ('IntervalScheduled', 'IntervalsSkipped', 'HistoryCollapsed')
         and event.event_type = 'BatchExportPaused'
       order by event.stream_version desc limit 1
     ) pause on true
     where not export.deleted`,
    [ids],
  );
  return rows;
}

/** What the schedule of an export has not created runs for yet. */
interface Schedule {
  readonly row: ExportRow;
  readonly is_readable: boolean;
  /** What it has recorded nothing of. */
  readonly undecided: readonly UndecidedRange[];
  readonly due: readonly DataInterval[];
  readonly due_intervals: number;
  readonly is_scheduled: boolean;
}

function scheduleOf(row: ExportRow, onUnreadable: (id: string, error: unknown) => void): Schedule {
  const { state, now } = row;
  try {
    const { revisions, definition, paused } = state;
    const undecided = undecidedRanges(state, new Date(now));
    const due = dueRanges(undecided);
    const isOver = definition.end_at !== null && Date.parse(definition.end_at) <= Date.parse(now);
    return {
      row,
      is_readable: true,
      undecided,
      due,
      due_intervals: sum(due.map((range) => countIntervals(revisions, range))),
      is_scheduled: !paused && !isOver,
    };
  } catch (error) {
    onUnreadable(row.id, error);
    return { row, is_readable: false, undecided: [], due: [], due_intervals: 0, is_scheduled: false };
  }
}

/** What the ledger says of the intervals of an export that have a run. */
interface Ledger {
  readonly id: string;
  /** Intervals of the schedule with a run and without a manifest, and the gaps of backfills. */
  readonly intervals: number;
  readonly seconds: number;
  /** Those of them that are gaps, and when the oldest of the others ended. */
  readonly gap_intervals: number;
  readonly oldest_end: string | null;
  /** Intervals that a backfill completed before the schedule reached them. */
  readonly completed_ahead: number;
  readonly completed_ahead_seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: Lag['gaps'];
}

/**
 * Reads the intervals without a manifest from the ledger. Those in a range without runs are counted with the range: the
 * schedule may have created their runs after the schedules were read, and a backfill's may have failed there.
 */
async function readLedgers(pool: Pool, schedules: readonly Schedule[]): Promise<ReadonlyMap<string, Ledger>> {
  const ranges = schedules.flatMap(({ row, due }) => due.map((range) => ({ id: row.id, ...range })));
  const { rows } = await pool.query<Ledger>(
    `with due as (
       select * from unnest($2::uuid[], $3::timestamptz[], $4::timestamptz[]) as due (id, range_start, range_end)
     ), without_manifest as (
       select batch_export_id as id, data_interval_start, data_interval_end, run_id, status, reason, is_scheduled
       from exportd.intervals
       where batch_export_id = any($1) and status <> 'exported' and manifest_run_id is null and run_id is not null
     ), with_run as (
       select id, count(*) as intervals, ${totalSeconds} as seconds,
         count(*) filter (where status = 'gap') as gap_intervals,
         min(data_interval_end) filter (where status <> 'gap') as oldest_end
       from without_manifest interval
       where (is_scheduled or status = 'gap') and status <> 'held' and not exists (
         select from due where due.id = interval.id
           and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end)
       group by id
     ), gap as (
       select id, json_agg(json_build_object('data_interval_start', data_interval_start,
         'data_interval_end', data_interval_end, 'run_id', run_id, 'status', reason) order by data_interval_start desc) as gaps
       from (select *, row_number() over (partition by id order by data_interval_start desc) as place
         from without_manifest where status = 'gap') newest
       where place <= $5 group by id
     )
     select export.id, coalesce(with_run.intervals, 0) as intervals, coalesce(with_run.seconds, 0) as seconds,
       coalesce(with_run.gap_intervals, 0) as gap_intervals, with_run.oldest_end, coalesce(gap.gaps, '[]') as gaps,
       coalesce(ahead.intervals, 0) as completed_ahead, coalesce(ahead.seconds, 0) as completed_ahead_seconds,
       completed.last_completed_interval_end
     from unnest($1::uuid[]) as export (id)
     left join with_run on with_run.id = export.id
     left join gap on gap.id = export.id
     left join (
       select due.id, count(*) as intervals, ${totalSeconds} as seconds
       from due join exportd.intervals interval on interval.batch_export_id = due.id
         and interval.manifest_run_id is not null
         and interval.data_interval_start >= due.range_start and interval.data_interval_end <= due.range_end
       group by due.id
     ) ahead on ahead.id = export.id
     left join lateral (
       select interval.data_interval_end as last_completed_interval_end from exportd.intervals interval
       where interval.batch_export_id = export.id and interval.manifest_run_id is not null
       order by interval.data_interval_start desc limit 1
     ) completed on true`,
    [
      schedules.map(({ row }) => row.id),
      ranges.map(({ id }) => id),
      ranges.map(({ start }) => start),
      ranges.map(({ end }) => end),
      maxGaps,
    ],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

const totalSeconds = 'coalesce(sum(extract(epoch from data_interval_end - data_interval_start)), 0)::float8';

/** Intervals of an export that need attention, by what their newest run ended with. */
interface Trouble extends FailedIntervals {
  readonly id: string;
  readonly kind: 'held' | 'unsettled' | 'retrying' | 'ended_by_person' | 'failed';
}

/** SQL: the newest intervals of a group, newest first, as `ranges` of `AffectedIntervals`. */
const newestRanges = `array_to_json((array_agg(json_build_object('start', ${isoTime('data_interval_start')},
  'end', ${isoTime('data_interval_end')}, 'run_id', run_id) order by data_interval_start desc))[:${maxRanges}])`;

async function readTroubles(
  pool: Pool,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Trouble[]>> {
  const { rows } = await pool.query<Trouble>(
    `select id, kind, count(*)::int as intervals, ${isoTime('min(since)')} as since, ${newestRanges} as ranges,
       (array_agg(latest_error order by data_interval_start desc))[1] as latest_error
     from (
       select interval.batch_export_id as id, interval.data_interval_start, interval.data_interval_end, interval.run_id,
         run.latest_error, coalesce(case when interval.status = 'unsettled' then interval.completed_at end,
           run.finished_at, interval.data_interval_end) as since,
         case when interval.status in ('held', 'unsettled') then interval.status
           when run.retry_at is not null then 'retrying'
           when interval.reason in ('Cancelled', 'Terminated') then 'ended_by_person' else 'failed' end as kind
       from exportd.intervals interval
       join exportd.batch_exports export on export.id = interval.batch_export_id
       left join exportd.batch_export_runs run on run.id = interval.run_id
       where interval.batch_export_id = any($1) and interval.status <> 'exported'
         and (interval.status in ('held', 'failed', 'gap') or interval.status = 'unsettled'
           -- What the bucket has deleted gets no late rows.
           and least(interval.expires_at, interval.completed_at + make_interval(days => export.retention_days))
             <= statement_timestamp() is not true)
     ) trouble group by 1, 2`,
    [ids],
  );
  return Map.groupBy(rows, ({ id }) => id);
}

/** Reads which intervals differ from the source, by the newest comparison of each. Of those that are held, their run has told it. */
async function readDiffering(
  pool: Pool,
  ids: readonly string[],
): Promise<ReadonlyMap<string, AffectedIntervals>> {
  const { rows } = await pool.query<AffectedIntervals & { readonly id: string }>(
    `select id, count(*)::int as intervals, ${isoTime('min(since)')} as since, ${newestRanges} as ranges
     from (
       select batch_export_id as id, data_interval_start, data_interval_end, compared.run_id,
         compared.last_compared_at as since
       from exportd.interval_comparisons compared
       join exportd.intervals interval using (batch_export_id, data_interval_start, data_interval_end)
       -- Late rows are exported by themselves.
       where batch_export_id = any($1) and compared.outcome in ('rows_missing', 'both') and not compared.kept
         and interval.status <> 'held'
       union
       select batch_export_id, data_interval_start, data_interval_end, interval.run_id, checked.checked_at
       from ${checkedIntervals} where ${differsNow} and interval.status <> 'held' and batch_export_id = any($1)
     ) differing group by 1`,
    [ids],
  );
  return new Map(rows.map(({ id, ...affected }) => [id, affected]));
}

/** What the ledger and the unfinished backfills say of the time of an export. */
interface TimeFacts extends Pick<
  CoverageFacts,
  'covered' | 'entries' | 'expired' | 'backfills' | 'known_from'
> {
  readonly id: string;
}

/** Ranges that are read of each kind and export: more of them are thinner than a pixel. */
const maxTimeRanges = 500;

/** SQL: whether an interval has files that readers see, which a failed or held run after them has not replaced. */
const isExported = 'manifest_run_id is not null';

/** SQL: the state and the reason of a row of the ledger, as `LedgerRange` has them. Without the rows that are simply exported. */
const ledgerEntries = `select batch_export_id as id, data_interval_start as starts, data_interval_end as ends,
    case when run_id is null then 'not_owed' when ${isExported} then 'exported' else 'owed' end as state,
    case when run_id is null then reason when status = 'running' and is_scheduled then 'due'
      when status = 'running' then 'backfill' when status = 'held' then 'held' else 'failed' end as reason
  from exportd.intervals
  where batch_export_id = any($1) and status <> 'exported'
    and not (${isExported} and status in ('running', 'unsettled'))`;

/**
 * SQL: the intervals whose files a rule of the bucket has deleted by now, as `isExpiredInterval` decides. Only exports that have such
 * a rule have rows to read.
 */
const expiredIntervals = `select interval.batch_export_id as id, interval.data_interval_start as starts,
    interval.data_interval_end as ends
  from exportd.intervals interval
  where interval.batch_export_id = any($1) and interval.manifest_run_id is not null
    and interval.expires_at <= statement_timestamp()
  union
  select interval.batch_export_id, interval.data_interval_start, interval.data_interval_end
  from exportd.batch_exports export join exportd.intervals interval on interval.batch_export_id = export.id
  where export.id = any($1) and export.retention_days is not null and interval.manifest_run_id is not null
    and interval.completed_at + make_interval(days => export.retention_days) <= statement_timestamp()`;

/** SQL: the newest ranges of each export in a relation with `id` and `starts`, and one more than is shown. */
const newestOf = (kind: keyof TimeFacts, relation: string, fields = ''): string =>
  `select '${kind}' as kind, id, starts, row_number() over (partition by id order by starts desc) as place,
     json_build_object('start', ${isoTime('starts')}, 'end', ${isoTime('ends')}${fields}) as fact from ${relation}`;

/** SQL: the facts of a kind, the newest first. */
const factsOfKind = (kind: keyof TimeFacts): string =>
  `coalesce(json_agg(fact order by starts desc) filter (where kind = '${kind}'), '[]') as ${kind}`;

/**
 * Reads what is exported, owed and skipped of the time of each export that has any. Of the ledger it reads what is not exported, and
 * the ranges without holes, so that it takes no longer for an export that is years old.
 */
async function readTime(pool: Pool, ids: readonly string[]): Promise<ReadonlyMap<string, TimeFacts>> {
  const { rows } = await pool.query<Omit<TimeFacts, 'known_from'>>(
    `with entry as (${ledgerEntries}
     ), marked as (
       select *, (lag(ends) over by_start = starts and lag(state) over by_start = state
         and lag(reason) over by_start is not distinct from reason) is not true as is_first
       from entry window by_start as (partition by id order by starts)
     ), numbered as (
       select *, count(*) filter (where is_first) over (partition by id order by starts) as number from marked
     ), ledger as (
       select id, state, reason, min(starts) as starts, max(ends) as ends from numbered group by id, number, state, reason
     ), covered as (
       select batch_export_id as id, starts, ends from exportd.covered_ranges where batch_export_id = any($1)
     ), expired_interval as (${expiredIntervals}
     ), expired_number as (
       select *, count(*) filter (where is_first) over (partition by id order by starts) as number from (
         select *, (lag(ends) over (partition by id order by starts) = starts) is not true as is_first
         from expired_interval) found
     ), expired as (
       select id, min(starts) as starts, max(ends) as ends from expired_number group by id, number
     ), facts as (
       ${newestOf('entries', 'ledger', `, 'state', state, 'reason', reason`)}
       union all ${newestOf('covered', 'covered')}
       union all ${newestOf('expired', 'expired')}
       union all
       select 'backfills', batch_export_id, backfill.created_at, 1, json_build_object('total', total_runs,
         'finished', completed_runs + failed_runs + cancelled_runs + uncounted.runs, 'is_paused', backfill.status = 'Paused',
         'created_at', ${isoTime('backfill.created_at')},
         'last_updated_at', ${isoTime('greatest(backfill.last_updated_at, uncounted.finished_at)')},
         -- Of those that failed, the ledger has each.
         'remaining', case when kind <> 'failed' then nullif(stream.state -> 'remaining', 'null') end)
       from exportd.backfills backfill
       join exportd.stream_states stream on stream.stream_type = 'backfill' and stream.stream_id = backfill.id
       cross join lateral (
         select count(*) as runs, max(run.finished_at) as finished_at
         from (select * from exportd.backfill_runs where ${isUncounted()}) open_run
         join exportd.batch_export_runs run on run.id = open_run.run_id and run.finished_at is not null
         where open_run.backfill_id = backfill.id) uncounted
       where backfill.batch_export_id = any($1) and backfill.finished_at is null and kind <> 'repair'
     )
     select id, ${factsOfKind('entries')}, ${factsOfKind('covered')}, ${factsOfKind('expired')}, ${factsOfKind('backfills')}
     from facts where place <= ${maxTimeRanges + 1} group by id`,
    [ids],
  );
  return new Map(
    rows.map(({ entries, covered, expired, ...row }) => {
      const from = [entries, covered, expired].flatMap((ranges) => ranges[maxTimeRanges]?.end ?? []);
      return [
        row.id,
        {
          ...row,
          entries: entries.slice(0, maxTimeRanges),
          covered: covered.slice(0, maxTimeRanges),
          expired: expired.slice(0, maxTimeRanges),
          known_from: from.toSorted().at(-1) ?? null,
        },
      ];
    }),
  );
}

/** What is exported of the time of an export; null if this version cannot read its schedule. */
function coverageOfSchedule(
  { row, is_readable, undecided }: Schedule,
  time: TimeFacts | undefined,
): Coverage | null {
  if (!is_readable) return null;
  const { state } = row;
  const now = new Date(row.now);
  return coverageOf({
    timezone: state.definition.timezone,
    until: intervalContaining(state.revisions, now).start,
    covered: time?.covered ?? [],
    entries: time?.entries ?? [],
    expired: time?.expired ?? [],
    backfills: time?.backfills ?? [],
    known_from: time?.known_from ?? null,
    undecided,
    next_end: nextIntervalEnd(state, now),
  });
}

const none: FailedIntervals = { intervals: 0, since: null, ranges: [], latest_error: null };

function factsOf(
  { row, is_readable, due, due_intervals, is_scheduled }: Schedule,
  ledger: Ledger | undefined,
  {
    troubles = [],
    coverage,
    differing,
  }: {
    readonly troubles: readonly Trouble[] | undefined;
    readonly coverage: Coverage | null;
    readonly differing: AffectedIntervals | undefined;
  },
): ConditionFacts {
  const troubleOf = (kind: Trouble['kind']): FailedIntervals =>
    troubles.find((trouble) => trouble.kind === kind) ?? none;
  const { state } = row;
  const [oldestDue] = due;
  const unstarted = oldestDue ? intervalContaining(state.revisions, new Date(oldestDue.start)).end : null;
  const oldestEnd = ledger?.oldest_end ?? null;
  const failed = troubleOf('failed');
  const ended_by_person = troubleOf('ended_by_person');
  const holes = coverage === null ? [] : holesOf(coverage).toReversed();
  const gaps = troubles.filter(({ kind }) => kind === 'failed' || kind === 'ended_by_person');
  const lag = is_readable ? lagOf({ due, due_intervals }, ledger) : null;
  return {
    id: row.id,
    team_id: row.team_id,
    now: row.now,
    interval_ms: is_readable ? nominalLengthMs(state.definition.interval) : 0,
    is_readable,
    pause: state.paused ? (row.pause ?? { at: state.paused_recorded_at, by: null, failed_runs: null }) : null,
    is_scheduled,
    active_runs: row.active_runs,
    waiting: (state.paused ? 0 : due_intervals) + row.scheduled_runs + row.backfill_runs,
    missing: {
      intervals: (lag?.intervals ?? 0) - (ledger?.gap_intervals ?? 0),
      oldest_end: earliest(unstarted, oldestEnd && new Date(oldestEnd).toISOString()),
    },
    unstarted_since: unstarted,
    taken_slots: row.taken_slots,
    taken_turns: row.taken_turns,
    worker_seen_at: row.worker_seen_at,
    workers_incident: row.workers_incident,
    temporal_fault: row.temporal_fault,
    source_fault: row.source_fault,
    operator_fault: row.operator_fault,
    circuit: row.circuit && { ...row.circuit, bucket: bucketName(row.circuit.bucket) },
    failed: {
      ...merged(gaps),
      ended_by_person,
      latest_error: failed.latest_error ?? ended_by_person.latest_error,
    },
    retrying: troubleOf('retrying'),
    held: troubleOf('held'),
    differing: differing ?? none,
    unsettled: troubleOf('unsettled'),
    target_fault: row.target_fault,
    coverage,
    holes: {
      intervals: sum(holes.map((hole) => countIntervals(state.revisions, hole))),
      since: null,
      ranges: holes.slice(0, maxRanges).map(({ start, end }) => ({ start, end, run_id: null })),
    },
  };
}

/** The intervals of several groups as one. */
const merged = (groups: readonly AffectedIntervals[]): AffectedIntervals => ({
  intervals: sum(groups.map(({ intervals }) => intervals)),
  since: groups.reduce<string | null>((since, group) => earliest(since, group.since), null),
  ranges: groups
    .flatMap(({ ranges }) => ranges)
    .toSorted((one, other) => Date.parse(other.start) - Date.parse(one.start))
    .slice(0, maxRanges),
});

const earliest = (one: string | null, other: string | null): string | null => {
  if (one === null || other === null) return one ?? other;
  return Date.parse(one) <= Date.parse(other) ? one : other;
};

function lagOf(
  { due, due_intervals }: Pick<Schedule, 'due' | 'due_intervals'>,
  ledger: Ledger | undefined,
): Lag {
  return {
    intervals: (ledger?.intervals ?? 0) + due_intervals - (ledger?.completed_ahead ?? 0),
    seconds: (ledger?.seconds ?? 0) + sum(due.map(secondsOf)) - (ledger?.completed_ahead_seconds ?? 0),
    last_completed_interval_end: ledger?.last_completed_interval_end ?? null,
    gaps: (ledger?.gaps ?? []).map((gap) => ({
      data_interval_start: new Date(gap.data_interval_start).toISOString(),
      data_interval_end: new Date(gap.data_interval_end).toISOString(),
      run_id: gap.run_id,
      status: gap.status,
    })),
  };
}

const secondsOf = ({ start, end }: DataInterval): number => (Date.parse(end) - Date.parse(start)) / 1_000;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
