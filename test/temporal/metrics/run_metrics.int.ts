import { Registry } from 'prom-client';
import { describe, expect, it } from '@jest/globals';
import { endRun } from '../../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../../src/decisions/run_recorder.ts';
import { attemptOf, runDecider } from '../../../src/domain/run.ts';
import type { ExistingRun } from '../../../src/domain/run_state.ts';
import type { PlannedPart } from '../../../src/domain/exported_files.ts';
import { openJournal } from '../../../src/projections/registry.ts';
import { createRunMetrics } from '../../../src/temporal/metrics.ts';
import { createCommander, quickPolicies } from '../../decisions/commander.ts';
import { createSimulatedRuns } from '../../decisions/simulated_runs.ts';
import { fingerprintOf } from '../../domain/fingerprints.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { valuesOf } from './metric_values.ts';

const database = useTestDatabase();
const policies = quickPolicies();

const part: PlannedPart = {
  part_number: 1,
  rows: 3,
  bytes: 90,
  fingerprint: fingerprintOf(3),
  rejected: 0,
  crc32: '00000000',
  first: null,
  last: null,
  encoder_state: null,
};

/** The metrics of a worker whose runs the test records. */
async function createWorker(perExport = false) {
  const metrics = new Registry();
  const { onCommitted } = createRunMetrics(metrics, { EXPORTD_METRICS_PER_EXPORT: perExport });
  const journal = openJournal(database.pool, { onCommitted });
  const recorder = createRunRecorder(journal);
  const commander = createCommander(journal, policies);
  await commander.create();
  const runs = createSimulatedRuns(journal, recorder, commander);
  const planPart = async (id: string, run: ExistingRun) => {
    await runs.upload(id, run, 'file');
    await recorder.planPart(id, attemptOf(run, 0), 'file', part);
  };
  return { metrics, journal, recorder, runs, planPart, batchExportId: commander.batchExportId };
}

describe('the metrics of runs', () => {
  it('exist before the first run', async () => {
    const { metrics } = await createWorker();
    expect(await valuesOf(metrics, 'exportd_runs_total')).toEqual({
      'status=Cancelled': 0,
      'status=Completed': 0,
      'status=ContinuedAsNew': 0,
      'status=Failed': 0,
      'status=FailedRetryable': 0,
      'status=Terminated': 0,
      'status=TimedOut': 0,
    });
    expect(await valuesOf(metrics, 'exportd_rows_total')).toEqual({ 'model=events': 0, 'model=persons': 0 });
  });

  it('count the steps of a run once, although activities repeat them', async () => {
    const { metrics, recorder, runs, planPart } = await createWorker();
    const id = await runs.create(3);
    const run = await runs.start(id);
    await planPart(id, run);
    await runs.publish(id, run, 'file');
    // A repeated attempt of the last step.
    await recorder.complete(id, run.generation, 'the manifest');
    expect(await valuesOf(metrics, 'exportd_runs_total')).toMatchObject({
      'status=Completed': 1,
      'status=Failed': 0,
    });
    expect(await valuesOf(metrics, 'exportd_rows_total')).toEqual({ 'model=events': 3, 'model=persons': 0 });
    expect(await valuesOf(metrics, 'exportd_bytes_total')).toEqual({
      'model=events': 90,
      'model=persons': 0,
    });
    const duration = await valuesOf(metrics, 'exportd_run_duration_seconds');
    expect(duration['le=+Inf,status=Completed']).toBe(1);
    expect(duration['status=Completed']).toBeGreaterThan(0);
    expect((await valuesOf(metrics, 'exportd_stage_seconds'))['le=+Inf,stage=wait']).toBe(1);
  });

  it('count how runs fail', async () => {
    const { metrics, journal, runs } = await createWorker();
    const id = await runs.create(4);
    await runs.start(id);
    await endRun(journal, policies, id, { status: 'Failed', latest_error: 'AccessDenied: No.' });
    expect(await valuesOf(metrics, 'exportd_runs_total')).toMatchObject({ 'status=Failed': 1 });
  });

  it('leave out what was rolled back', async () => {
    const { metrics, journal, runs } = await createWorker();
    const id = await runs.create(5);
    const cancelled = journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, id);
      await stream.append('test', [{ type: 'RunCancelled', data: { reason: 'test' } }]);
      throw new Error('rolled back');
    });
    await expect(cancelled).rejects.toThrow('rolled back');
    expect(await valuesOf(metrics, 'exportd_runs_total')).toMatchObject({ 'status=Cancelled': 0 });
  });

  it('name the export where the setting allows it', async () => {
    const { metrics, runs, planPart, batchExportId } = await createWorker(true);
    const id = await runs.create(6);
    await planPart(id, await runs.start(id));
    expect(await valuesOf(metrics, 'exportd_rows_total')).toEqual({
      [`batch_export_id=${batchExportId},model=events,project_id=1`]: 3,
    });
  });
});
