import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { createWaitingRuns } from '../../src/decisions/waiting_runs.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { storeFault } from '../../src/failures/operator_faults.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createLaggingExport } from './lagging_export.ts';
import { readRuns } from './read_runs.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const policies = quickPolicies();
const recorder = createRunRecorder(journal);
const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const slots = 4;
const waiting = createWaitingRuns(pool, slots);

/** Tests share the database, and each has projects of its own. */
let lastProject = 0;
const newProject = () => (lastProject += 1);

const count = (id: string, rows: number) =>
  recorder.recordCount(id, {
    records_total_count: rows,
    fingerprint: fingerprintOf(rows),
    settled: true,
    split_keys: [],
  });

/** The runs of an export whose schedule has missed three minutes, the oldest first. They have counted their rows. */
async function createRuns(project: number, rows = 7): Promise<[string, string, string]> {
  const { batchExportId, command } = createCommander(journal, policies, randomUUID(), project);
  await createLaggingExport(journal, batchExportId, 3, project);
  await command('unpause');
  const [oldest, middle, newest] = await readRuns(pool, { batch_export_id: batchExportId });
  const ids: [string, string, string] = [oldest?.id ?? '', middle?.id ?? '', newest?.id ?? ''];
  for (const id of ids) await count(id, rows);
  return ids;
}

describe('a run that waits for a slot', () => {
  it('comes after those of its project with an older interval', async () => {
    const project = newProject();
    const [oldest, middle, newest] = await createRuns(project);
    const others = await createRuns(project);
    await createRuns(newProject());
    expect(await waiting.hasOlder(oldest, [oldest])).toBe(false);
    expect(await waiting.hasOlder(middle, [middle])).toBe(true);
    // Those of the other export too.
    expect(await waiting.hasOlder(middle, [oldest, middle])).toBe(true);
    expect(await waiting.hasOlder(middle, [oldest, others[0], middle])).toBe(false);
    expect(await waiting.hasOlder(newest, [oldest, others[0], newest])).toBe(true);
  });

  it('does not wait for one that has begun, has ended, or has no rows', async () => {
    const [oldest, middle, newest] = await createRuns(newProject());
    await recorder.startExport(oldest, 0);
    expect(await waiting.hasOlder(middle, [middle])).toBe(false);
    expect(await waiting.hasOlder(newest, [newest])).toBe(true);
    await endRun(journal, policies, middle, { status: 'Failed', latest_error: 'NoSuchBucket: No.' });
    expect(await waiting.hasOlder(newest, [newest])).toBe(false);
    const [, , last] = await createRuns(newProject(), 0);
    expect(await waiting.hasOlder(last, [last])).toBe(false);
  });

  it('does not wait once it has begun', async () => {
    const [, , newest] = await createRuns(newProject());
    await recorder.startExport(newest, 0);
    expect(await waiting.hasOlder(newest, [newest])).toBe(false);
  });

  it('does not wait for one that fails, or waits for its bucket or the operator', async () => {
    const [oldest, middle, newest] = await createRuns(newProject());
    await recorder.recordFailedAttempt(oldest, {
      type: 'InternalError',
      message: 'The S3 server failed.',
      step: 'the export',
      retriedUntil: null,
    });
    expect(await waiting.hasOlder(middle, [middle])).toBe(false);
    await storeFault(pool, logger, middle, { type: 'DiskFull', message: 'Full.' });
    expect(await waiting.hasOlder(newest, [newest])).toBe(false);
    const out = await createRuns(newProject());
    expect(await waiting.hasOlder(out[2], [out[2]])).toBe(true);
    await pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config, circuit)
       select batch_export_id, config_version, 'S3', '{}', 's3://out' from exportd.batch_export_runs where id = $1`,
      [out[0]],
    );
    await pool.query(
      `insert into exportd.destination_circuits (destination, opened_at, error, next_probe_at)
       values ('s3://out', clock_timestamp(), 'The S3 server refused the connection.', clock_timestamp())`,
    );
    expect(await waiting.hasOlder(out[2], [out[2]])).toBe(false);
  });

  describe('beside other workers', () => {
    afterEach(async () => {
      await pool.query('delete from exportd.worker_heartbeats');
    });

    it('comes after as many older ones as they can run, since these have their slots', async () => {
      const project = newProject();
      const all = [await createRuns(project), await createRuns(project)];
      const [newest = ''] = all.map(([, , id]) => id);
      const older = all.flatMap(([oldest, middle]) => [oldest, middle]);
      const report = (worker: string, exportSlots: number, secondsAgo: number) =>
        pool.query(
          `insert into exportd.worker_heartbeats (worker, export_slots, seen_at)
           values ($1, $2, clock_timestamp() - $3 * interval '1 second')`,
          [worker, exportSlots, secondsAgo],
        );
      await report('this one', slots, 1);
      await report('gone', 100, 60);
      expect(await waiting.hasOlder(newest, [newest])).toBe(true);
      await report('another', older.length - 1, 1);
      expect(await waiting.hasOlder(newest, [newest])).toBe(true);
      expect(await waiting.hasOlder(newest, [newest, ...older.slice(0, 1)])).toBe(false);
    });
  });
});

describe('a slot', () => {
  it('is of use for another project while that has a run that has counted its rows', async () => {
    const { rows } = await pool.query<{ id: string }>('select id from exportd.batch_export_runs');
    const known = rows.map(({ id }) => id);
    expect(await waiting.hasOtherProjects(known)).toBe(false);
    const runs = await createRuns(newProject());
    expect(await waiting.hasOtherProjects(known)).toBe(true);
    expect(await waiting.hasOtherProjects([...known, runs[0]])).toBe(false);
    for (const id of runs)
      await endRun(journal, policies, id, { status: 'Failed', latest_error: 'NoSuchBucket: No.' });
    expect(await waiting.hasOtherProjects(known)).toBe(false);
  });
});
