import { beforeAll, describe, expect, it } from '@jest/globals';
import { continueRun } from '../../src/decisions/advance_backfill.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { attemptOf } from '../../src/domain/run.ts';
import { ensureProjections, openJournal, rebuild } from '../../src/projections/registry.ts';
import { createCommander, minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { waitFor } from '../setup/wait_for.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { projectionContents, projectionTables } from './projection_contents.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

const { pool } = useTestDatabase();

beforeAll(async () => {
  const journal = openJournal(pool);
  const { batchExportId, command, create } = createCommander(journal, quickPolicies());
  await create();
  await command('pause');
  await command('update', { changes: { name: 'Renamed' }, paused: false });
  await command('backfill', { start_at: minutesAgo(5), end_at: minutesAgo(2) });
  const { rows } = await pool.query<{ id: string }>(
    'select id from exportd.batch_export_runs where batch_export_id = $1 order by position',
    [batchExportId],
  );
  const recorder = createRunRecorder(journal);
  const id = rows[0]?.id ?? '';
  await recorder.recordCount(id, {
    records_total_count: 3,
    fingerprint: fingerprintOf(3),
    settled: true,
    split_keys: [],
  });
  await recorder.startExport(id, 0);
  const attempt = attemptOf(await recorder.reserveGeneration(id), 0);
  const upload = {
    file: 0,
    key: 'key',
    upload_id: 'upload',
    upload_token: 'token',
    part_bytes: null,
    encoder: 'test/1',
  };
  await recorder.recordUpload(id, attempt, upload);
  const key = { inserted_at: '2026-11-01T10:00:00.000000Z', id: 'row' };
  const part = {
    part_number: 1,
    rows: 3,
    rejected: 0,
    fingerprint: fingerprintOf(3),
    bytes: 90,
    crc32: '00000000',
    first: key,
    last: key,
  };
  await recorder.planPart(id, attempt, 'key', { ...part, encoder_state: { crc32: 1, length: 2 } });
  await continueRun(journal, id);
  await command('cancelRun', { run_id: rows[1]?.id });
});

const tables = projectionTables;
const contents = () => projectionContents(pool);

describe('the projections', () => {
  it('are equal after they are dropped and rebuilt', async () => {
    const before = await contents();
    for (const table of tables) await pool.query(`drop table ${table} cascade`);
    expect(await rebuild(pool)).toBeGreaterThan(10);
    expect(await contents()).toBe(before);
  });

  it('are rebuilt by a deployment if a table is missing', async () => {
    const before = await contents();
    await pool.query('drop table exportd.batch_export_runs');
    await ensureProjections(pool);
    expect(await contents()).toBe(before);
  });

  it('are rebuilt even if a reader locks one table and waits for another', async () => {
    const before = await contents();
    const reader = await pool.connect();
    try {
      await reader.query('begin');
      await reader.query('select from exportd.batch_export_runs limit 1');
      const rebuilt = rebuild(pool);
      await waitFor(async () => {
        const { rows } = await pool.query(`select from pg_locks where not granted and relation is not null
             and database = (select oid from pg_database where datname = current_database())`);
        return rows.length > 0;
      }, 'the rebuild to wait for the reader');
      // PostgreSQL may cancel either side of the deadlock.
      await reader.query('select from exportd.batch_exports limit 1').catch(() => undefined);
      await reader.query('rollback');
      await rebuilt;
    } finally {
      reader.release();
    }
    expect(await contents()).toBe(before);
  });
});
