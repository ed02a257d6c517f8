import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { expectedRows, netMissingRows } from '../../src/domain/difference.ts';
import { applyDecideDifference } from '../../src/decisions/decide_difference.ts';
import { findComparison, recordComparison } from '../../src/decisions/comparisons.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { registerDeploymentMetrics, registerExportMetrics } from '../../src/http/metrics.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { compareFingerprints } from '../../src/domain/comparison.ts';
import { CommandRejected } from '../../src/domain/errors.ts';
import type { DataInterval } from '../../src/domain/intervals.ts';
import { createPool } from '../../src/journal/database.ts';
import { recordIntervalCheck } from '../../src/projections/interval_checks.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import type { TaskQueueState } from '../../src/temporal/clients/executions.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { valuesOf } from '../temporal/metrics/metric_values.ts';

const database = useTestDatabase();
const { pool } = database;
const policies = quickPolicies();
const journal = openJournal(pool);
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });

/** An export without an end. Its schedule has no runs; `runs` records those of backfills. */
async function createExport(definition: object) {
  const commander = createCommander(journal, policies);
  await commander.create({ end_at: null, ...definition });
  const runs = createSimulatedRuns(journal, createRunRecorder(journal), commander);
  const complete = async (minutes: number): Promise<string> => {
    const id = await runs.create(minutes);
    await runs.publish(id, await runs.start(id), `file of ${id}`);
    return id;
  };
  return { ...commander, runs, complete };
}

/** Stores what a verification of the interval that a run has says now. */
async function storeVerification(run: string, ok: boolean): Promise<void> {
  const { rows } = await pool.query<DataInterval & { batch_export_id: string }>(
    `select batch_export_id, data_interval_start as start, data_interval_end as end
     from exportd.batch_export_runs where id = $1`,
    [run],
  );
  const [interval] = rows;
  if (!interval) throw new Error(`There is no run ${run}.`);
  await recordIntervalCheck(pool, {
    ...interval,
    checked_by: 'verification',
    checked_at: new Date().toISOString(),
    difference: ok ? null : '1 missing',
    findings: {},
  });
}

const exportMetrics = (perExport = false): Registry => {
  const metrics = new Registry();
  const settings = { EXPORTD_METRICS_PER_EXPORT: perExport, EXPORTD_COMPARISON_FIRST: 3_600_000 };
  registerExportMetrics(metrics, { pool, logger, settings, cacheMs: 0 });
  return metrics;
};

const minutely = 'interval=every 1 minutes';

describe('the metrics of exports', () => {
  let exported: Awaited<ReturnType<typeof createExport>>;
  beforeAll(async () => {
    exported = await createExport({ interval: 'every 1 minutes' });
    const [older, newer] = [await exported.complete(4), await exported.complete(2)];
    await exported.runs.hold(await exported.runs.retry(older), policies);
    await pool.query(
      `update exportd.interval_comparisons set outcome = 'rows_missing',
        last_compared_at = '2026-11-01T10:00:00Z' where run_id = $1`,
      [older],
    );
    // The later report counts.
    for (const ok of [false, true]) await storeVerification(newer, ok);
    await createExport({ interval: 'hour' });
    const paused = await createExport({ interval: 'day' });
    await paused.command('pause');
  });

  it('say how old the newest exported data of the slowest export is', async () => {
    const metrics = exportMetrics();
    const ageOf = async (interval: string): Promise<number> => {
      const { rows } = await pool.query<{ age: number }>(
        `select extract(epoch from statement_timestamp() - created_at)::float8 as age from exportd.batch_exports
         where interval = $1`,
        [interval],
      );
      return rows[0]?.age ?? NaN;
    };
    const freshness = await valuesOf(metrics, 'exportd_freshness_seconds');
    // Both were created a moment ago: one has exported nothing, the other minutes that its schedule does not owe.
    expect(freshness[minutely]).toBeCloseTo(await ageOf('every 1 minutes'), -1);
    expect(freshness['interval=hour']).toBeCloseTo(await ageOf('hour'), -1);
  });

  it('count the exports in each condition', async () => {
    expect(await valuesOf(exportMetrics(), 'exportd_export_condition')).toEqual({
      [`cause=held,${minutely},severity=error`]: 1,
      'cause=ok,interval=hour,severity=ok': 1,
      'cause=paused,interval=day,severity=ok': 1,
    });
  });

  it('leave a paused export out, which is not behind', async () => {
    const metrics = exportMetrics();
    expect(await valuesOf(metrics, 'exportd_freshness_seconds')).not.toHaveProperty('interval=day');
  });

  it('count intervals that are held, unsettled, missing or differ from the source', async () => {
    const metrics = exportMetrics();
    expect(await valuesOf(metrics, 'exportd_held_intervals')).toMatchObject({
      [minutely]: 1,
      'interval=hour': 0,
    });
    expect(await valuesOf(metrics, 'exportd_unsettled_intervals')).toMatchObject({ [minutely]: 0 });
    expect(await valuesOf(metrics, 'exportd_missing_intervals')).toHaveProperty(minutely);
    // Two minutes, and the one between them, which nothing owes.
    expect(await valuesOf(metrics, 'exportd_covered_seconds')).toMatchObject({
      [`${minutely},state=exported`]: 120,
      [`${minutely},state=not_owed`]: expect.any(Number),
      'interval=hour,state=exported': 0,
    });
    // The one that a comparison found to differ is held, which is one alert.
    expect(await valuesOf(metrics, 'exportd_differing_intervals')).toMatchObject({
      [`${minutely},outcome=rows_missing`]: 0,
      [`${minutely},outcome=rows_added`]: 0,
      [`${minutely},outcome=verification`]: 0,
    });
    expect(await valuesOf(metrics, 'exportd_last_verified_timestamp_seconds')).toEqual({
      [minutely]: Date.parse('2026-11-01T10:00:00Z') / 1_000,
    });
  });

  it('count no difference that a person has kept, until a comparison finds other rows', async () => {
    const compared = await createExport({ interval: 'every 3 minutes' });
    const run = await compared.complete(6);
    const { rows } = await pool.query<{ id: number }>(
      `insert into exportd.users (distinct_id, email) values ('ada', 'ada@example.com') returning id`,
    );
    const { comparisons } = policies.maintenance;
    const files = fingerprintOf(3);
    const differ = async (missing: number, sum = String(3 - missing)): Promise<void> => {
      const interval = await findComparison(pool, run);
      if (!interval) throw new Error('The run has no comparisons.');
      const source = fingerprintOf(3 - missing, { sum });
      const comparison = compareFingerprints(expectedRows(files, interval.kept_rows), source);
      await recordComparison(journal, comparisons, { interval, source, comparison, at: interval.at });
    };
    const found = async () => {
      const values = await valuesOf(exportMetrics(), 'exportd_differing_intervals');
      return ['rows_missing', 'both'].map((outcome) => values[`interval=every 3 minutes,outcome=${outcome}`]);
    };
    const keep = async (missing: number, sum = String(3 - missing)) => {
      const interval = await findComparison(pool, run);
      if (!interval) throw new Error('The run has no comparisons.');
      const decided = {
        start: interval.data_interval_start,
        end: interval.data_interval_end,
        decision: 'keep',
        reason: 'A person left.',
        user_id: rows[0]?.id ?? 0,
        run_id: run,
        rows: missing,
        missing: netMissingRows(files, fingerprintOf(3 - missing, { sum })),
        missing_hashes: null,
      } as const;
      return journal.transaction(async (transaction) => {
        const batchExport = await transaction.lock(batchExportDecider, compared.batchExportId);
        const id = randomUUID();
        const context = { transaction, batchExport, policies, commandId: id, cause: `job:${id}` };
        return applyDecideDifference(context, decided);
      });
    };
    await expect(keep(0)).rejects.toThrow(CommandRejected);
    await differ(1);
    expect(await found()).toEqual([1, 0]);
    expect(await keep(1)).toMatchObject({ applied: true });
    expect(await found()).toEqual([0, 0]);
    // The next comparison is due, and reads the rows again.
    const kept = await findComparison(pool, run);
    expect(kept).toMatchObject({ examined: null });
    expect(Date.parse(kept?.next_due_at ?? '')).toBeLessThanOrEqual(Date.parse(kept?.at ?? ''));
    await differ(1);
    expect(await found()).toEqual([0, 0]);
    // The row has come back, and the source lacks another one.
    await differ(1, '9');
    expect(await found()).toEqual([0, 1]);
    expect(await keep(1, '9')).toMatchObject({ applied: true });
    await differ(2);
    expect(await found()).toEqual([1, 0]);
  });

  it('say for how long comparisons have been due', async () => {
    const compared = await createExport({ interval: 'every 4 minutes' });
    const run = await compared.complete(8);
    const overdue = async () =>
      (await valuesOf(exportMetrics(), 'exportd_comparison_overdue_seconds'))['interval=every 4 minutes'];
    const due = (hours: number, comparisons: number) =>
      pool.query(
        `update exportd.interval_comparisons set comparisons = $3,
           next_due_at = clock_timestamp() - $2 * interval '1 hour' where run_id = $1`,
        [run, hours, comparisons],
      );
    expect(await overdue()).toBe(0);
    // The first comparison is due an hour later.
    await due(3, 0);
    expect(Math.round((Number(await overdue()) - 7_200) / 600)).toBe(0);
    await due(3, 1);
    expect(Math.round((Number(await overdue()) - 10_800) / 600)).toBe(0);
    await compared.command('pause');
    expect(await overdue()).toBe(0);
    await compared.command('unpause');
    expect(await overdue()).toBeGreaterThan(0);
    // Manifests of another model are not compared.
    await compared.command('update', { changes: { model: 'persons' } });
    expect(await overdue()).toBe(0);
  });

  it('count a verification with findings until its interval is exported again', async () => {
    const again = await createExport({ interval: 'every 2 minutes' });
    const run = await again.complete(4);
    const found = async () =>
      (await valuesOf(exportMetrics(), 'exportd_differing_intervals'))[
        'interval=every 2 minutes,outcome=verification'
      ];
    await storeVerification(run, false);
    expect(await found()).toBe(1);
    const retried = await again.runs.retry(run);
    await again.runs.publish(retried, await again.runs.start(retried), 'another file');
    expect(await found()).toBe(0);
  });

  it('name the export where the setting allows it', async () => {
    const labels = `batch_export_id=${exported.batchExportId},${minutely},project_id=1`;
    expect(await valuesOf(exportMetrics(true), 'exportd_held_intervals')).toMatchObject({ [labels]: 1 });
  });
});

describe('the metrics of the deployment', () => {
  const queue: TaskQueueState = { name: 'control', pollers: 2, backlog: 7, backlog_age_seconds: 3 };
  const metricsOf = (database = pool, describeTaskQueues = () => Promise.resolve([queue])): Registry => {
    const metrics = new Registry();
    registerDeploymentMetrics(metrics, { pool: database, describeTaskQueues, cacheMs: 0 });
    return metrics;
  };

  it('report workers and what waits for them', async () => {
    const metrics = metricsOf();
    expect(await valuesOf(metrics, 'exportd_workers')).toEqual({ 'queue=control': 2 });
    expect(await valuesOf(metrics, 'exportd_queued_tasks')).toEqual({ 'queue=control': 7 });
    expect(await valuesOf(metrics, 'exportd_pending_commands')).toEqual({ '': 0 });
    expect(await valuesOf(metrics, 'exportd_dependency_up')).toEqual({
      'dependency=control_database': 1,
      'dependency=temporal': 1,
      'dependency=source': 1,
    });
  });

  it('are absent, not old, while a server does not respond', async () => {
    const unreachable = createPool('postgres://127.0.0.1:1/none', { max: 1, connectTimeoutMs: 1_000 });
    const metrics = metricsOf(unreachable, () => Promise.reject(new Error('no connection')));
    expect(await valuesOf(metrics, 'exportd_dependency_up')).toEqual({
      'dependency=control_database': 0,
      'dependency=temporal': 0,
    });
    expect(await valuesOf(metrics, 'exportd_workers')).toEqual({});
    expect(await valuesOf(metrics, 'exportd_pending_commands')).toEqual({});
    await unreachable.end();
  });

  it('count an unavailable destination until no export uses it', async () => {
    const { batchExportId, command } = await createExport({ interval: 'hour' });
    const circuit = randomUUID();
    await pool.query(
      `insert into exportd.destination_circuits (destination, opened_at, error) values ($1, now(), 'test')`,
      [circuit],
    );
    expect(await valuesOf(metricsOf(), 'exportd_unavailable_destinations')).toEqual({ '': 0 });
    await pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, circuit)
       values ($1, 1, 'S3', '{}', $2)`,
      [batchExportId, circuit],
    );
    expect(await valuesOf(metricsOf(), 'exportd_unavailable_destinations')).toEqual({ '': 1 });
    await command('delete');
    expect(await valuesOf(metricsOf(), 'exportd_unavailable_destinations')).toEqual({ '': 0 });
  });
});
