import { Gauge, type Registry } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import type { Condition } from '../domain/condition.ts';
import { type Coverage, coverageStates, secondsOf } from '../domain/coverage.ts';
import type { Pool } from '../journal/database.ts';
import { readStandings } from '../projections/export_conditions.ts';
import { checkedIntervals, differsNow } from '../projections/interval_checks.ts';
import type { Logger } from '../telemetry/logger.ts';
import { shareReading } from '../telemetry/metrics.ts';
import type { TaskQueueState } from '../temporal/clients/executions.ts';

/** A reading serves every scrape of this time, in milliseconds. */
export const maxAgeMs = 10_000;

/** A value of a metric, by its labels. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Registers a gauge that has the samples of each scrape, and no others. */
export function addGauge(
  metrics: Registry,
  name: string,
  help: string,
  labelNames: readonly string[],
  read: () => Promise<readonly Sample[]>,
): void {
  const gauge: Gauge = new Gauge({
    name,
    help,
    labelNames,
    registers: [metrics],
    collect: async () => {
      const samples = await read();
      gauge.reset();
      // A gauge without labels would else be 0.
      if (labelNames.length === 0) gauge.remove();
      for (const { labels, value } of samples) gauge.set(labels, value);
    },
  });
}

/** What waits in the control database. */
interface Pending {
  readonly commands: number;
  readonly unavailable_destinations: number;
  readonly source_unavailable: boolean;
}

/**
 * Registers what concerns all processes of a deployment: whether the servers it needs respond, workers, task queues, and
 * what waits. Every server reports the same numbers.
 */
export function registerDeploymentMetrics(
  metrics: Registry,
  {
    pool,
    describeTaskQueues,
    cacheMs = maxAgeMs,
  }: {
    readonly pool: Pool;
    readonly describeTaskQueues: () => Promise<readonly TaskQueueState[]>;
    /** For tests. */
    readonly cacheMs?: number;
  },
): void {
  const queues = shareReading(describeTaskQueues, cacheMs);
  const pending = shareReading(() => readPending(pool), cacheMs);
  const isUp = (reading: unknown): number => (reading ? 1 : 0);
  /** Whether workers can read the source: absent while the control database, which they report to, does not respond. */
  const sourceSample = async (): Promise<Sample[]> => {
    const found = await pending.read();
    return found ? [{ labels: { dependency: 'source' }, value: isUp(!found.source_unavailable) }] : [];
  };
  addGauge(
    metrics,
    'exportd_dependency_up',
    'Whether a server that exportd needs responds: 1 or 0.',
    ['dependency'],
    async () => [
      { labels: { dependency: 'control_database' }, value: isUp(await pending.read()) },
      { labels: { dependency: 'temporal' }, value: isUp(await queues.read()) },
      ...(await sourceSample()),
    ],
  );
  const queueGauge = (name: string, help: string, value: (state: TaskQueueState) => number): void => {
    addGauge(metrics, name, help, ['queue'], async () => {
      const states = (await queues.read()) ?? [];
      return states.map((state) => ({ labels: { queue: state.name }, value: value(state) }));
    });
  };
  queueGauge(
    'exportd_workers',
    'Worker processes that have polled a task queue within the last 70 seconds. Absent while Temporal does not respond.',
    ({ pollers }) => pollers,
  );
  queueGauge(
    'exportd_queued_tasks',
    'Tasks of Temporal that wait for a worker, approximately.',
    ({ backlog }) => backlog,
  );
  queueGauge(
    'exportd_queued_task_age_seconds',
    'How long the oldest waiting task has waited.',
    ({ backlog_age_seconds }) => backlog_age_seconds,
  );
  const pendingGauge = (name: string, help: string, value: (found: Pending) => number): void => {
    addGauge(metrics, name, help, [], async () => {
      const found = await pending.read();
      return found ? [{ labels: {}, value: value(found) }] : [];
    });
  };
  pendingGauge(
    'exportd_unavailable_destinations',
    'Buckets that do not respond. Their runs wait, and one request at a time probes each.',
    ({ unavailable_destinations }) => unavailable_destinations,
  );
  pendingGauge(
    'exportd_pending_commands',
    'Commands of the API that no worker has applied yet.',
    ({ commands }) => commands,
  );
}

async function readPending(pool: Pool): Promise<Pending> {
  const { rows } = await pool.query<Pending>(
    `select (select count(*) from exportd.commands where status = 'pending') as commands,
       exists (select from exportd.operator_faults
         where dependency = 'source' and resolved_at is null) as source_unavailable,
       -- A destination that no export uses any more is not probed.
       (select count(distinct circuit.destination) from exportd.destination_circuits circuit
        join exportd.destination_configs config on config.circuit = circuit.destination
        join exportd.batch_exports export
          on export.id = config.batch_export_id and export.config_version = config.version
        where circuit.opened_at is not null and not export.deleted and (not export.paused or exists (
          select from exportd.batch_export_runs run
          where run.batch_export_id = export.id and run.status in ('Starting', 'Running')))
       ) as unavailable_destinations`,
  );
  const [row] = rows;
  if (!row) throw new RangeError('A statement without FROM returns one row.');
  return row;
}

/** Outcomes of a comparison with the source after which a person or another run has to act. */
const comparisonOutcomes = ['rows_added', 'rows_missing', 'both'] as const;

/** Counts the intervals by export that differ by other checks, such as one that a person requested; 0 if none differs. */
const otherCounts = `
  select batch_export_id, checked_by, count(*) filter (where ${differsNow} and interval.status <> 'held') as intervals
  from ${checkedIntervals} group by 1, 2`;

/** How a live export is doing. */
interface ExportHealth {
  readonly id: string;
  readonly team_id: number;
  readonly interval: string;
  readonly condition: Condition;
  /** Null if its schedule cannot be read. */
  readonly coverage: Coverage | null;
  /**
   * Seconds since the end of the newest interval that is exported or skipped, or since the creation of the export if that is
   * later: what precedes it, the schedule does not owe. Null if it owes nothing more.
   */
  readonly freshness_seconds: number | null;
  /** Ended intervals of the schedule without a manifest, and gaps. Null if its schedule cannot be read. */
  readonly missing_intervals: number | null;
  readonly unsettled_intervals: number;
  readonly held_intervals: number;
  /** Intervals whose files differ from the source, by the outcome of the latest comparison or verification. */
  readonly differing_intervals: Readonly<Record<string, number>>;
  /** When any of its intervals was last compared with the source, in seconds since 1970; null if none was. */
  readonly last_compared_at: number | null;
  /** Seconds since its longest overdue comparison became due; 0 if none is, and while they are disabled. */
  readonly comparison_overdue_seconds: number;
}

type Row = Omit<ExportHealth, 'missing_intervals' | 'condition' | 'coverage'>;

/** Reads the health of all live exports, with one statement for each index that it uses. */
async function readExportHealth(
  pool: Pool,
  firstComparisonMs: number,
  onUnreadable: (id: string, error: unknown) => void,
): Promise<ExportHealth[]> {
  const { rows } = await pool.query<Row>(
    `select export.id, export.team_id, export.interval,
       case when not export.paused and coalesce(export.start_at <= now, true) and coalesce(export.end_at > now, true)
         then greatest(0, extract(epoch from
           now - greatest(decided.until, export.created_at, export.start_at)))::float8
       end as freshness_seconds,
       unexported.unsettled as unsettled_intervals, unexported.held as held_intervals,
       coalesce(differing.counts, '{}') as differing_intervals,
       extract(epoch from compared.last_compared_at)::float8 as last_compared_at,
       case when export.paused then 0 else coalesce(overdue.seconds, 0) end as comparison_overdue_seconds
     from exportd.batch_exports export cross join statement_timestamp() as now
     left join lateral (
       select interval.data_interval_end as until from exportd.intervals interval
       where interval.batch_export_id = export.id
         and (interval.manifest_run_id is not null or interval.run_id is null)
       order by interval.data_interval_start desc limit 1
     ) decided on true
     cross join lateral (
       select count(*) filter (where interval.status = 'unsettled') as unsettled,
         count(*) filter (where interval.status = 'held') as held
       from exportd.intervals interval where interval.batch_export_id = export.id and interval.status <> 'exported'
     ) unexported
     left join lateral (
       select comparison.last_compared_at from exportd.interval_comparisons comparison
       where comparison.batch_export_id = export.id and comparison.last_compared_at is not null
       order by comparison.last_compared_at desc limit 1
     ) compared on true
     left join (
       select batch_export_id, jsonb_object_agg(outcome, intervals) as counts
       from (
         select batch_export_id, compared.outcome, count(*) as intervals from exportd.interval_comparisons compared
         join exportd.intervals interval using (batch_export_id, data_interval_start, data_interval_end)
         where compared.outcome in (${comparisonOutcomes.map((outcome) => `'${outcome}'`).join(', ')})
           and not compared.kept and interval.status <> 'held' group by 1, 2
         union all ${otherCounts}
       ) counted group by 1
     ) differing on differing.batch_export_id = export.id
     left join (
       select batch_export_id, model,
         extract(epoch from statement_timestamp() - min(next_due_at + delay))::float8 as seconds
       from exportd.interval_comparisons, lateral (select case when comparisons > 0 then interval '0' else
         make_interval(secs => $1::double precision / 1000) end as delay) first
       where next_due_at <= statement_timestamp() and next_due_at + delay <= statement_timestamp() and $1 > 0
       group by 1, 2
     ) overdue on overdue.batch_export_id = export.id and overdue.model = export.model
     where not export.deleted`,
    [firstComparisonMs],
  );
  const standings = await readStandings(
    pool,
    rows.map(({ id }) => id),
    onUnreadable,
  );
  return rows.flatMap((row) => {
    const standing = standings.get(row.id);
    if (!standing) return [];
    const { condition, coverage, lag } = standing;
    return { ...row, condition, coverage, missing_intervals: lag?.intervals ?? null };
  });
}

/** Exports that share the values of their labels. */
interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly exports: readonly ExportHealth[];
}

type Aggregate = (values: readonly number[]) => number;
const sum: Aggregate = (values) => values.reduce((total, value) => total + value, 0);
const max: Aggregate = (values) => Math.max(...values);
const min: Aggregate = (values) => Math.min(...values);

/**
 * Registers how far exports are, from the read models. There is one series for each interval, `hour` and `day` for
 * example, or with EXPORTD_METRICS_PER_EXPORT one for each export. Every server reports the same numbers, so rules take
 * their maximum. While the control database does not respond, they are absent.
 */
export function registerExportMetrics(
  metrics: Registry,
  {
    pool,
    logger,
    settings,
    cacheMs = maxAgeMs,
  }: {
    readonly pool: Pool;
    readonly logger: Logger;
    readonly settings: Pick<Settings, 'EXPORTD_METRICS_PER_EXPORT' | 'EXPORTD_COMPARISON_FIRST'>;
    /** For tests. */
    readonly cacheMs?: number;
  },
): void {
  const perExport = settings.EXPORTD_METRICS_PER_EXPORT;
  const ownLabels = perExport ? ['interval', 'project_id', 'batch_export_id'] : ['interval'];
  const health = shareReading(
    () =>
      readExportHealth(pool, settings.EXPORTD_COMPARISON_FIRST, (id, error) =>
        logger.warn({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.'),
      ),
    cacheMs,
  );
  const labelsOf = ({ id, team_id, interval }: ExportHealth): Series['labels'] =>
    perExport ? { interval, project_id: String(team_id), batch_export_id: id } : { interval };
  const readSeries = async (): Promise<Series[]> => {
    const exports = (await health.read()) ?? [];
    const bySeries = Map.groupBy(exports, (one) => JSON.stringify(labelsOf(one)));
    return [...bySeries.values()].flatMap((members) => {
      const [first] = members;
      return first ? [{ labels: labelsOf(first), exports: members }] : [];
    });
  };

  /** A gauge of one number for each series; exports without the number do not take part. */
  const gaugeOf = (
    name: string,
    help: string,
    aggregate: Aggregate,
    value: (one: ExportHealth) => number | null,
  ): void => {
    addGauge(metrics, name, help, ownLabels, async () =>
      (await readSeries()).flatMap(({ labels, exports }) => {
        const values = exports.map(value).filter((number) => number !== null);
        return values.length > 0 ? [{ labels, value: aggregate(values) }] : [];
      }),
    );
  };
  addGauge(
    metrics,
    'exportd_export_condition',
    'Exports by their condition, as the API, the console and `exportd status` show it.',
    [...ownLabels, 'severity', 'cause'],
    async () =>
      (await readSeries()).flatMap(({ labels, exports }) =>
        [...Map.groupBy(exports, ({ condition }) => condition.cause).values()].flatMap((group) =>
          group.slice(0, 1).map(({ condition: { severity, cause } }) => ({
            labels: { ...labels, severity, cause },
            value: group.length,
          })),
        ),
      ),
  );
  addGauge(
    metrics,
    'exportd_covered_seconds',
    'How much time is exported, owed and neither, from the first interval that an export knows to the newest that has ended.',
    [...ownLabels, 'state'],
    async () =>
      (await readSeries()).flatMap(({ labels, exports }) =>
        coverageStates.map((state) => ({
          labels: { ...labels, state },
          value: sum(exports.map(({ coverage }) => (coverage === null ? 0 : secondsOf(coverage, state)))),
        })),
      ),
  );
  gaugeOf(
    'exportd_freshness_seconds',
    'Time since the end of the newest exported interval: how far behind the slowest export is. It rises to the length of the interval and the duration of a run, and falls again. Without paused exports.',
    max,
    ({ freshness_seconds }) => freshness_seconds,
  );
  gaugeOf(
    'exportd_missing_intervals',
    'Ended intervals without a manifest: due, running, failed or gaps.',
    sum,
    ({ missing_intervals }) => missing_intervals,
  );
  gaugeOf(
    'exportd_unsettled_intervals',
    'Intervals that were exported while transactions of the source were open, which may still add rows.',
    sum,
    ({ unsettled_intervals }) => unsettled_intervals,
  );
  gaugeOf(
    'exportd_held_intervals',
    'Intervals whose newest run was held, because it would have removed exported rows.',
    sum,
    ({ held_intervals }) => held_intervals,
  );
  gaugeOf(
    'exportd_last_verified_timestamp_seconds',
    'When an export was last compared with the source: of several exports, the one that was compared longest ago.',
    min,
    ({ last_compared_at }) => last_compared_at,
  );
  gaugeOf(
    'exportd_comparison_overdue_seconds',
    'For how long the comparison of an interval with the source has been due. It grows when the source has more rows than EXPORTD_COMPARISON_ROWS_PER_SECOND allows to compare.',
    max,
    ({ comparison_overdue_seconds }) => comparison_overdue_seconds,
  );
  addGauge(
    metrics,
    'exportd_differing_intervals',
    'Intervals whose files differed from the source when they were last compared, or verified on request. Without those that are held, and those that a person has kept.',
    [...ownLabels, 'outcome'],
    async () =>
      (await readSeries()).flatMap(({ labels, exports }) => {
        const counts = exports.map(({ differing_intervals }) => differing_intervals);
        const outcomes = new Set([...comparisonOutcomes, ...counts.flatMap(Object.keys)]);
        return [...outcomes].map((outcome) => ({
          labels: { ...labels, outcome },
          value: sum(counts.map((count) => count[outcome] ?? 0)),
        }));
      }),
  );
}
