import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { continueRun } from '../../src/decisions/continue_run.ts';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { backfillDecider } from '../../src/domain/backfill.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import type { Decider, DomainEvent, Recorded, StreamType } from '../../src/domain/event.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import type { Pool } from '../../src/journal/database.ts';
import { ensureProjections, openJournal, rebuild } from '../../src/projections/registry.ts';
import { stateOf } from '../../src/projections/stream_states.ts';
import { createCommander, minutesAgo, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns, fileOf, unknownManifest } from '../decisions/simulated_runs.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { readStream } from '../journal/read_stream.ts';
import { randomCases } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { ledgerViolations } from './ledger_violations.ts';
import { projectionContents, projectionTables } from './projection_contents.ts';
import { anyLifecycle, startLifecycle } from './random_lifecycle.ts';
import { readRun, readRuns } from '../decisions/read_runs.ts';

describe('the objects of destinations', () => {
  const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_RUN_RETRY_LIMIT: '1' });
  const database = useTestDatabase();
  const journal = openJournal(database.pool);
  const recorder = createRunRecorder(journal);
  let commander: ReturnType<typeof createCommander>;
  let runs: ReturnType<typeof createSimulatedRuns>;

  beforeEach(async () => {
    commander = createCommander(journal, policies);
    runs = createSimulatedRuns(journal, recorder, commander);
    await commander.create();
  });

  /** `published` includes objects whose run has claimed publishing. */
  type State = 'needed' | 'published' | 'obsolete';

  /** Starts a run that exported the file `a` and created the upload `b`. */
  async function createRunWithObjects() {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.file(id, run, 'a');
    await runs.upload(id, run, 'b');
    return { id, run };
  }

  /** The export's objects by key. */
  async function objects(): Promise<Record<string, [object_type: string, state: State, owner: string]>> {
    const { rows } = await database.pool.query<{
      key: string;
      object_type: string;
      state: State;
      run_id: string;
    }>(
      `select key, object_type, run_id,
       case when obsolete_at is not null then 'obsolete' when publish_claimed then 'published' else 'needed' end as state
     from exportd.destination_objects where batch_export_id = $1 order by position`,
      [commander.batchExportId],
    );
    return Object.fromEntries(
      rows.map(({ key, object_type, state, run_id }) => [key, [object_type, state, run_id]]),
    );
  }

  const end = (id: string, status: RunOutcome) =>
    endRun(journal, policies, id, { status, latest_error: 'A reason.' });

  it('start as an upload, become a file, and are published with the manifest', async () => {
    const id = await runs.create(3);
    const run = await runs.upload(id, await runs.start(id), 'a');
    expect(await objects()).toEqual({ a: ['upload', 'needed', id] });
    await recorder.recordFile(id, attemptOf(run, 0), fileOf('a'));
    expect(await objects()).toEqual({ a: ['file', 'needed', id] });
    await recorder.planRejectedFile(id, run.generation, fileOf('a-rejected'));
    await runs.claim(id, run);
    await recorder.complete(id, run.generation, 'the manifest');
    expect(await objects()).toEqual({
      a: ['file', 'published', id],
      'a-rejected': ['file', 'published', id],
      'the manifest': ['manifest', 'published', id],
    });
  });

  it('stay published until another run of the interval is Completed', async () => {
    const first = await runs.create(3);
    await runs.publish(first, await runs.start(first), 'first');
    const second = await runs.retry(first);
    const run = await runs.start(second);
    expect((await objects()).first).toEqual(['file', 'published', first]);
    await runs.publish(second, run, 'second');
    expect(await objects()).toEqual({
      first: ['file', 'obsolete', first],
      second: ['file', 'published', second],
      'the manifest': ['manifest', 'published', second],
    });
  });

  it('are locked with other rows in the order of the tables: the row of a run before that of its interval', async () => {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.file(id, run, 'a');
    await runs.claim(id, run);
    const schedule = await database.pool.connect();
    try {
      await schedule.query('begin');
      await schedule.query('select from exportd.batch_export_runs where id = $1 for no key update', [id]);
      const completing = recorder.complete(id, run.generation, 'the manifest');
      await waitFor(async () => {
        const { rows } = await database.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length > 0;
      }, 'the completion waits for the row of its run');
      await schedule.query('select from exportd.intervals where run_id = $1 for no key update nowait', [id]);
      await schedule.query('commit');
      await completing;
    } finally {
      schedule.release(true);
    }
  });

  it('are obsolete when another generation replaces theirs', async () => {
    const { id, run } = await createRunWithObjects();
    await recorder.reserveGeneration(id, attemptOf(run, 0));
    expect(await objects()).toEqual({ a: ['file', 'obsolete', id], b: ['upload', 'obsolete', id] });
  });

  it('are obsolete when a lost upload is replaced under another file number', async () => {
    const id = await runs.create(3);
    const run = await runs.upload(id, await runs.start(id), 'a-0');
    await runs.upload(id, run, 'a-1');
    expect(await objects()).toEqual({ 'a-0': ['upload', 'obsolete', id], 'a-1': ['upload', 'needed', id] });
  });

  it.each(['Failed', 'Cancelled', 'Terminated'] as const)(
    'are obsolete when the run ends %s',
    async (status) => {
      const { id } = await createRunWithObjects();
      await end(id, status);
      expect(await objects()).toEqual({ a: ['file', 'obsolete', id], b: ['upload', 'obsolete', id] });
    },
  );

  it('wait for an automatic retry, which inherits them', async () => {
    const { id } = await createRunWithObjects();
    await end(id, 'FailedRetryable');
    expect(await objects()).toEqual({ a: ['file', 'needed', id], b: ['upload', 'needed', id] });
    const { start_runs } = await commander.step();
    const retry = start_runs.at(-1)?.run_id ?? '';
    expect(await objects()).toEqual({ a: ['file', 'needed', retry], b: ['upload', 'needed', retry] });
    await end(retry, 'TimedOut');
    expect(await objects()).toEqual({ a: ['file', 'obsolete', retry], b: ['upload', 'obsolete', retry] });
  });

  it('are obsolete when the retry is cancelled with its backfill', async () => {
    const id = await runs.create(3);
    await runs.file(id, await runs.start(id), 'a');
    await commander.command('pause');
    await end(id, 'FailedRetryable');
    expect(await objects()).toEqual({ a: ['file', 'needed', id] });
    const { backfill_id, retry_at } = await readRun(database.pool, id);
    expect(retry_at).not.toBeNull();
    await commander.command('cancelBackfill', { backfill_id });
    expect(await objects()).toEqual({ a: ['file', 'obsolete', id] });
    await commander.command('unpause');
    expect(await objects()).toEqual({ a: ['file', 'obsolete', id] });
  });

  it('are obsolete when a run is created that does not inherit them', async () => {
    const id = await runs.create(3);
    await runs.file(id, await runs.start(id), 'a');
    await end(id, 'FailedRetryable');
    await commander.command('pause');
    await runs.retry(id);
    expect(await objects()).toEqual({ a: ['file', 'obsolete', id] });
  });

  it('are inherited by the run that continues theirs', async () => {
    const id = await runs.create(3);
    await runs.upload(id, await runs.start(id), 'a');
    const { run_id } = await continueRun(journal, id);
    expect(await objects()).toEqual({ a: ['upload', 'needed', run_id] });
  });

  it('stay published when their run ends while publishing, because its manifest may exist', async () => {
    const id = await runs.create(3);
    const run = await runs.start(id);
    await runs.file(id, run, 'a');
    await runs.claim(id, run);
    await end(id, 'Terminated');
    expect(await objects()).toEqual({ a: ['file', 'published', id] });
    const second = await runs.retry(id);
    expect(await objects()).toEqual({ a: ['file', 'published', id] });
    await runs.publish(second, await runs.start(second), 'b');
    expect((await objects()).a).toEqual(['file', 'obsolete', id]);
  });

  it('of adopted manifests stay published when another manifest is adopted, or the run fails', async () => {
    const id = await runs.create(3);
    const run = await runs.file(id, await runs.start(id), 'a');
    await runs.claim(id, run);
    const adopted = await recorder.adoptManifest(id, run.generation, unknownManifest(run, 5));
    await recorder.adoptManifest(id, adopted.generation, unknownManifest(run, 9));
    await end(id, 'Failed');
    expect(await objects()).toEqual({
      a: ['file', 'obsolete', id],
      'unknown/5': ['file', 'published', id],
      'kept/5': ['file', 'published', id],
      'unknown/9': ['file', 'published', id],
      'kept/9': ['file', 'published', id],
    });
  });

  it('stay published when the export is deleted; the rest is obsolete', async () => {
    const first = await runs.create(3);
    await runs.publish(first, await runs.start(first), 'published');
    const second = await runs.create(5);
    await runs.upload(second, await runs.start(second), 'upload');
    await end(second, 'FailedRetryable');
    await commander.command('delete');
    expect(await objects()).toEqual({
      published: ['file', 'published', first],
      'the manifest': ['manifest', 'published', first],
      upload: ['upload', 'obsolete', second],
    });
  });

  it('are removed from the table when they are deleted', async () => {
    const { id } = await createRunWithObjects();
    await end(id, 'Failed');
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, id);
      const outcome = { deleted: true, reason: null };
      await stream.append('deleted:b', [
        {
          type: 'RunObjectDeleted',
          data: { key: 'b', upload_id: 'upload of b', upload_token: 'token of b', ...outcome },
        },
      ]);
      expect(stream.state()).toMatchObject({ status: 'Failed' });
    });
    expect(await objects()).toEqual({ a: ['file', 'obsolete', id] });
  });

  it('are equal after a rebuild', async () => {
    const readRows = async () =>
      (
        await database.pool.query<object>(
          'select * from exportd.destination_objects order by position, ordinal',
        )
      ).rows;
    const before = await readRows();
    expect(before.length).toBeGreaterThan(10);
    await rebuild(database.pool);
    expect(await readRows()).toEqual(before);
  });
});

describe('the projections', () => {
  const { pool } = useTestDatabase();

  beforeAll(async () => {
    const journal = openJournal(pool);
    const { batchExportId, command, create } = createCommander(journal, quickPolicies());
    await create();
    await command('pause');
    await command('update', { changes: { name: 'Renamed' }, paused: false });
    await command('backfill', { start_at: minutesAgo(5), end_at: minutesAgo(2) });
    const rows = await readRuns(pool, { batch_export_id: batchExportId });
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

describe('the projections after random commands and runs', () => {
  /** Folds a stream with its decider alone; returns the state as JSON. */
  async function foldOf<State, Event extends DomainEvent>(
    pool: Pool,
    decider: Decider<State, Event>,
    id: string,
  ): Promise<unknown> {
    const events = (await readStream(pool, decider.streamType, id)) as unknown as Recorded<Event>[];
    const state = events.reduce<State>(
      (folded, event) => decider.evolve(folded, event),
      decider.initialState,
    );
    return JSON.parse(JSON.stringify(state));
  }

  /** Folds a stream of any type. */
  function foldByType(pool: Pool, type: string, id: string): Promise<unknown> {
    if (type === 'run') return foldOf(pool, runDecider, id);
    return type === 'backfill' ? foldOf(pool, backfillDecider, id) : foldOf(pool, batchExportDecider, id);
  }

  /** The ledger, without what a collapse of history adds to it. */
  async function readLedger(pool: Pool): Promise<unknown[]> {
    const { rows } = await pool.query<object>(
      `select to_jsonb(interval) - '{collapsed_generation,collapsed_config_version}'::text[] as row
       from exportd.intervals interval order by data_interval_start, data_interval_end`,
    );
    return rows;
  }

  it('equal a fold of the journal, and so do the states that decisions depend on', async () => {
    await fc.assert(
      fc.asyncProperty(anyLifecycle, async (actions) => {
        const lifecycle = await startLifecycle();
        const { pool } = lifecycle.database;
        try {
          for (const { run } of actions) await run(lifecycle);
          const ledger = await readLedger(pool);
          await lifecycle.collapse(0);
          expect(await readLedger(pool)).toEqual(ledger);
          expect(await ledgerViolations(pool)).toEqual({});
          const before = await projectionContents(pool);
          await rebuild(pool);
          expect(await projectionContents(pool)).toBe(before);
          const { rows } = await pool.query<{
            type: StreamType;
            id: string;
            version: number;
            state: unknown;
          }>(
            `select stream_type as type, stream_id as id, stream.version, state from exportd.stream_states
             join exportd.journal_streams stream using (stream_type, stream_id)
             where stream_states.version = stream.version`,
          );
          const { rows: streams } = await pool.query(
            'select from exportd.journal_streams where version > 0 and collapsed_at is null',
          );
          expect(rows).toHaveLength(streams.length);
          for (const { type, id, state } of rows)
            expect(stateOf(type, state)).toEqual(await foldByType(pool, type, id));
        } finally {
          await lifecycle.database.drop();
        }
      }),
      { numRuns: randomCases(2) },
    );
  });
});
