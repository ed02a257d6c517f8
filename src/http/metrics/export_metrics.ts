import { Gauge, type Registry } from 'prom-client';
import type { Settings } from '../../config/settings.ts';
import { nominalLengthMs } from '../../domain/intervals.ts';
import type { Pool } from '../../journal/database.ts';
import { shareReading } from '../../telemetry/metrics.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { differences, readExportHealth, type ExportHealth } from '../read_models/export_health.ts';

/** A reading serves every scrape of this time, in milliseconds. */
const maxAgeMs = 10_000;

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
    readonly settings: Pick<Settings, 'EXPORTD_METRICS_PER_EXPORT'>;
    /** For tests. */
    readonly cacheMs?: number;
  },
): void {
  const perExport = settings.EXPORTD_METRICS_PER_EXPORT;
  const ownLabels = perExport ? ['interval', 'project_id', 'batch_export_id'] : ['interval'];
  const health = shareReading(
    () =>
      readExportHealth(pool, (id, error) =>
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
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: ownLabels,
      registers: [metrics],
      collect: async () => {
        const series = await readSeries();
        gauge.reset();
        for (const { labels, exports } of series) {
          const values = exports.map(value).filter((number) => number !== null);
          if (values.length > 0) gauge.set(labels, aggregate(values));
        }
      },
    });
  };
  gaugeOf(
    'exportd_freshness_seconds',
    'Time since the end of the newest exported interval: how far behind the slowest export is. Without paused exports.',
    max,
    ({ freshness_seconds }) => freshness_seconds,
  );
  gaugeOf(
    'exportd_interval_seconds',
    'Length of the interval. `exportd_freshness_seconds` rises to it and to the duration of a run, and falls again.',
    max,
    ({ interval }) => nominalLengthMs(interval) / 1_000,
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
  for (const [name, isPaused] of [
    ['exportd_active_exports', false],
    ['exportd_paused_exports', true],
  ] as const)
    gaugeOf(name, `Exports that are ${isPaused ? 'paused' : 'not paused'}.`, sum, ({ paused }) =>
      paused === isPaused ? 1 : 0,
    );
  const differing: Gauge = new Gauge({
    name: 'exportd_differing_intervals',
    help: 'Intervals whose files differed from the source when they were last compared, or verified on request.',
    labelNames: [...ownLabels, 'outcome'],
    registers: [metrics],
    collect: async () => {
      const series = await readSeries();
      differing.reset();
      for (const { labels, exports } of series)
        for (const outcome of differences)
          differing.set(
            { ...labels, outcome },
            sum(exports.map(({ differing_intervals }) => differing_intervals[outcome] ?? 0)),
          );
    },
  });
}
