import { randomBytes, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { advanceSchedule } from '../../src/decisions/advance_schedule.ts';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { requestRepair } from '../../src/decisions/repairs.ts';
import { findSharedKeys } from '../../src/decisions/destination_rules.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { mergeConfig, storeConfig } from '../../src/destination/config_versions.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, definition, quickPolicies } from './commander.ts';
import { createSimulatedRuns } from './simulated_runs.ts';
import { changeStored } from '../setup/change_stored.ts';
import { readRun, readRuns } from './read_runs.ts';

describe('the definition that a run exports:', () => {
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
    const found = (await readRuns(database.pool, { batch_export_id: commander.batchExportId })).at(-1);
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
  const automatic = async (): Promise<void> => {
    const { data_interval_start: start, data_interval_end: end } = await readRun(database.pool, exported);
    const repair = await journal.transaction(async (transaction) => {
      await transaction.lock(batchExportDecider, commander.batchExportId);
      return requestRepair(transaction, commander.batchExportId, {
        team_id: 1,
        run_id: exported,
        start,
        end,
      });
    });
    await advanceBackfill(journal, policies, repair);
  };

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

    it.each([
      ['the prefix', { prefix: `moved/${randomUUID()}` }],
      ['the bucket', { bucket_name: 'another-bucket' }],
      ['the store', { endpoint_url: 'https://store.example.com' }],
    ])('stays where the interval lies when %s is changed, also when it is retried', async (_, change) => {
      await update({ config_version: await storeVersion({ include_events: ['a', 'b'], ...change }) });
      await automatic();
      const first = await newest();
      expect(first).toMatchObject({ config_version: 1 });
      await endRun(journal, policies, first.id, { status: 'FailedRetryable', latest_error: 'Error: down.' });
      await advanceSchedule(journal, policies, commander.batchExportId, []);
      const retry = await newest();
      expect(retry.id).not.toBe(first.id);
      expect(retry).toMatchObject({ config_version: 1 });
    });

    it('uses the current config if that selects the same rows and leads to the same place', async () => {
      const config_version = await storeVersion({ include_events: ['a', 'b'], file_format: 'CSV' });
      await update({ config_version });
      await automatic();
      expect(await newest()).toMatchObject({ config_version: 2 });
    });
  });

  describe('a retry that a person requests', () => {
    it.each([
      ['selection', { include_events: ['a'] }],
      ['place', { include_events: ['a', 'b'], prefix: `moved/${randomUUID()}` }],
    ])('uses the current %s', async (_, change) => {
      await update({ config_version: await storeVersion(change) });
      await commander.command('retry', { run_id: exported });
      expect(await newest()).toMatchObject({ config_version: 2 });
    });
  });
});

describe('the check of a destination:', () => {
  const store = {
    keyRing: createKeyRing(`test:${randomBytes(32).toString('base64')}`),
    settings: { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false, EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: true },
  };

  const database = useTestDatabase();
  const journal = openJournal(database.pool);

  /** Stores the config of an export that is ready to be created. */
  async function prepare(config: object, more: { definition?: object; team?: number } = {}) {
    const commander = createCommander(journal, quickPolicies(), undefined, more.team);
    const { batchExportId: batch_export_id } = commander;
    await inTransaction(database.pool, (connection) =>
      storeConfig(connection, store, {
        batch_export_id,
        destination_type: 'S3',
        config: { bucket_name: 'bucket', region: 'us-east-1', ...config },
      }),
    );
    const update = async (config: Record<string, unknown> | null, changes: object = {}) => {
      const config_version =
        config === null
          ? 1
          : await inTransaction(database.pool, (connection) =>
              mergeConfig(connection, store, { batch_export_id, base_version: 1, config }),
            );
      return (await commander.command('update', { changes: { config_version, ...changes } })).command;
    };
    const create = async () =>
      (
        await commander.command('create', {
          definition: { ...definition, ...more.definition },
          paused: true,
        })
      ).command;
    return { ...commander, id: batch_export_id, create, update };
  }

  const rejectedBecauseOf = (id: string) => ({
    status: 'rejected',
    outcome: expect.objectContaining({
      code: 'invalid_input',
      attr: 'destination__config__prefix',
      detail: expect.stringContaining(id),
    }),
  });

  describe('two live exports', () => {
    it('cannot write the same keys: the second is rejected with the id of the first, even if that is paused', async () => {
      const prefix = randomUUID();
      const first = await prepare({ prefix });
      const second = await prepare({ prefix });
      expect(await first.create()).toMatchObject({ status: 'applied' });
      expect(await second.create()).toMatchObject(rejectedBecauseOf(first.id));
      const { rows } = await database.pool.query('select from exportd.batch_exports where id = $1', [
        second.id,
      ]);
      expect(rows).toHaveLength(0);
    });

    it('of different projects cannot learn of each other or keep a prefix; the operator sees both', async () => {
      const prefix = randomUUID();
      const first = await prepare({ prefix });
      const second = await prepare({ prefix }, { team: 2 });
      const third = await prepare({ prefix }, { team: 2 });
      expect(await first.create()).toMatchObject({ status: 'applied' });
      expect(await second.create()).toMatchObject({ status: 'applied' });
      expect(await third.create()).toMatchObject(rejectedBecauseOf(second.id));
      const shared = (await findSharedKeys(database.pool)).filter(({ exports }) =>
        exports.some(({ id }) => id === first.id),
      );
      expect(shared).toEqual([
        {
          location: 'aws /bucket',
          exports: [
            { id: first.id, team_id: 1 },
            { id: second.id, team_id: 2 },
          ],
        },
      ]);
    });

    it('can use one prefix one after the other', async () => {
      const prefix = randomUUID();
      const first = await prepare({ prefix });
      const second = await prepare({ prefix });
      await first.create();
      await first.command('delete');
      expect(await second.create()).toMatchObject({ status: 'applied' });
    });

    it('do not collide if their intervals differ in length, but do if only the names differ', async () => {
      const prefix = randomUUID();
      const hourly = await prepare({ prefix }, { definition: { interval: 'hour' } });
      const daily = await prepare({ prefix }, { definition: { interval: 'day' } });
      const sixty = await prepare({ prefix }, { definition: { interval: 'every 60 minutes' } });
      await hourly.create();
      expect(await daily.create()).toMatchObject({ status: 'applied' });
      expect(await sixty.create()).toMatchObject(rejectedBecauseOf(hourly.id));
    });

    it('collide in past intervals, which a backfill can reach', async () => {
      const prefix = randomUUID();
      const first = await prepare({ prefix }, { definition: { interval: 'hour' } });
      const second = await prepare({ prefix }, { definition: { interval: 'hour' } });
      await first.create();
      expect(await first.update(null, { interval: 'day' })).toMatchObject({ status: 'applied' });
      expect(await second.create()).toMatchObject(rejectedBecauseOf(first.id));
    });

    it('cannot both be created at the same instant', async () => {
      for (let round = 0; round < 5; round++) {
        const prefix = randomUUID();
        const exports = await Promise.all([1, 2, 3, 4].map(() => prepare({ prefix })));
        const commands = await Promise.all(exports.map(({ create }) => create()));
        expect(commands.map(({ status }) => status).sort()).toEqual([
          'applied',
          'rejected',
          'rejected',
          'rejected',
        ]);
      }
    });

    it('cannot be made to collide by an update of config, model or interval', async () => {
      const root = randomUUID();
      const first = await prepare({ prefix: `${root}/{table}` });
      const second = await prepare({ prefix: `${root}/{table}` }, { definition: { model: 'persons' } });
      const third = await prepare({ prefix: `${root}/{table}` }, { definition: { interval: 'day' } });
      const fourth = await prepare({ prefix: `${root}/other` });
      for (const each of [first, second, third, fourth])
        expect(await each.create()).toMatchObject({ status: 'applied' });
      expect(await second.update(null, { model: 'events' })).toMatchObject(rejectedBecauseOf(first.id));
      expect(await third.update(null, { interval: 'every 1 minutes' })).toMatchObject(
        rejectedBecauseOf(first.id),
      );
      expect(await fourth.update({ prefix: `${root}/events` })).toMatchObject(rejectedBecauseOf(first.id));
      expect(await fourth.update({ prefix: `${root}/third` })).toMatchObject({ status: 'applied' });
      expect(await first.update({ compression: 'gzip' })).toMatchObject({ status: 'applied' });
      expect(await fourth.update({ prefix: `${root}/events` })).toMatchObject({ status: 'applied' });
    });

    it('are not checked by an update that cannot affect the result', async () => {
      const prefix = randomUUID();
      const first = await prepare({ prefix });
      const second = await prepare({ prefix: `${prefix}/other` });
      await first.create();
      await second.create();
      // Create a collision behind the check's back.
      await changeStored(
        database.pool,
        `update exportd.destination_configs set config = config || jsonb_build_object('prefix', $2::text)
       where batch_export_id = $1`,
        [second.id, prefix],
      );
      expect(await second.update(null, { name: 'A new name' })).toMatchObject({ status: 'applied' });
      expect(await second.update({ compression: null })).toMatchObject(rejectedBecauseOf(first.id));
    });
  });

  describe('a selection of events', () => {
    it.each([
      ['include_events', { include_events: ['a'] }],
      ['exclude_events', { exclude_events: ['a'] }],
      ['filters__0__type', { filters: [{ type: 'event', key: 'a', operator: 'is_set' }] }],
    ])('by %s is rejected for persons, whether the config or the model changes', async (field, config) => {
      const rejected = {
        status: 'rejected',
        outcome: expect.objectContaining({ attr: `destination__config__${field}` }),
      };
      const persons = { definition: { model: 'persons' } };
      const created = await prepare({ prefix: randomUUID(), ...config }, persons);
      expect(await created.create()).toMatchObject(rejected);
      const updated = await prepare({ prefix: randomUUID() }, persons);
      await updated.create();
      expect(await updated.update(config)).toMatchObject(rejected);
      const remodelled = await prepare({ prefix: randomUUID(), ...config });
      expect(await remodelled.create()).toMatchObject({ status: 'applied' });
      expect(await remodelled.update(null, { model: 'persons' })).toMatchObject(rejected);
    });
  });
});
