import { beforeEach, describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { storeConfig } from '../../src/destination/config_versions.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createSimulatedRuns } from './simulated_runs.ts';

const database = useTestDatabase();
const journal = openJournal(database.pool);
const recorder = createRunRecorder(journal);
const keyRing = createKeyRing(`test:${Buffer.alloc(32).toString('base64')}`);
const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s' });

let commander: ReturnType<typeof createCommander>;
let runs: ReturnType<typeof createSimulatedRuns>;
let exported: string;

const storeVersion = (more: object): Promise<number> =>
  inTransaction(database.pool, (connection) =>
    storeConfig(
      connection,
      { keyRing, settings: s3Settings() },
      {
        batch_export_id: commander.batchExportId,
        destination_type: 'S3',
        config: {
          bucket_name: 'bucket',
          region: 'us-east-1',
          prefix: commander.batchExportId,
          aws_access_key_id: 'key',
          aws_secret_access_key: 'secret',
          ...more,
        },
      },
    ),
  );

/** The definition of the newest run. */
async function newest() {
  const { rows } = await database.pool.query<{ id: string; model: string; config_version: number }>(
    'select id, model, config_version from exportd.batch_export_runs where batch_export_id = $1 order by position desc limit 1',
    [commander.batchExportId],
  );
  const [found] = rows;
  if (!found) throw new Error('There is no run.');
  return found;
}

beforeEach(async () => {
  commander = createCommander(journal, policies);
  runs = createSimulatedRuns(journal, recorder, commander);
  await commander.create({ config_version: await storeVersion({ include_events: ['a', 'b'] }) });
  exported = await runs.create(30);
  await runs.publish(exported, await runs.start(exported), 'a file');
});

const update = async (changes: object): Promise<void> => {
  const { command } = await commander.command('update', { changes });
  expect(command.status).toBe('applied');
};
const automatic = () => commander.command('retry', { run_id: exported, reason: 'late_rows' });

describe('an automatic re-export', () => {
  it('keeps the selection of the manifest, also when it is retried', async () => {
    const config_version = await storeVersion({ include_events: ['a'] });
    await update({ config_version });
    await automatic();
    const first = await newest();
    expect(first).toMatchObject({ model: 'events', config_version: 1 });
    await endRun(journal, policies, first.id, { status: 'FailedRetryable', latest_error: 'Error: down.' });
    await advanceSchedule(journal, policies, commander.batchExportId, []);
    const retry = await newest();
    expect(retry.id).not.toBe(first.id);
    expect(retry).toMatchObject({ config_version: 1 });
  });

  it('keeps the model of the manifest', async () => {
    await update({ model: 'persons', config_version: await storeVersion({}) });
    await automatic();
    expect(await newest()).toMatchObject({ model: 'events', config_version: 1 });
  });

  it('uses the current config if that selects the same rows', async () => {
    const config_version = await storeVersion({
      include_events: ['a', 'b'],
      prefix: `${commander.batchExportId}/moved`,
    });
    await update({ config_version });
    await automatic();
    expect(await newest()).toMatchObject({ config_version: 2 });
  });
});

describe('a retry that a person requests', () => {
  it('uses the current selection', async () => {
    const config_version = await storeVersion({ include_events: ['a'] });
    await update({ config_version });
    await commander.command('retry', { run_id: exported });
    expect(await newest()).toMatchObject({ config_version: 2 });
  });
});
