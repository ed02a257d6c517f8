import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { collapseHistory, type HistoryRetention } from '../../src/decisions/collapse_history.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { builderLock } from '../../src/projections/rebuild.ts';
import { buildProjections, openJournal, rebuild, switchProjections } from '../../src/projections/registry.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { projectionContents } from '../projections/projection_contents.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { createLaggingExport } from './lagging_export.ts';
import { readBackfills } from './read_backfills.ts';
import { createSimulatedRuns, minuteBefore } from './simulated_runs.ts';
import { storedRows } from '../../src/temporal/capabilities.ts';
import { readCommands } from '../journal/read_commands.ts';
import { readRuns } from './read_runs.ts';

/** Everything that has ended is old. */
const everything: HistoryRetention = {
  historyMs: 0,
  deletedExportMs: undefined,
  idempotencyKeyMs: 0,
  newestRuns: 0,
};
const policies = quickPolicies({ EXPORTD_RUN_RETRY_INITIAL: '0s', EXPORTD_RUN_RETRY_LIMIT: '1' });
const never = (): boolean => false;

describe('collapsing the history', () => {
  const { pool } = useTestDatabase();
  const journal = openJournal(pool);
  const recorder = createRunRecorder(journal);
  let commander: ReturnType<typeof createCommander>;
  let runs: ReturnType<typeof createSimulatedRuns>;

  beforeEach(() => {
    commander = createCommander(journal, policies);
    runs = createSimulatedRuns(journal, recorder, commander);
  });

  const publish = async (id: string): Promise<void> =>
    runs.publish(id, await runs.start(id), `file of ${id}`);

  /** Unpauses a lagging export, and publishes the runs of its schedule. */
  async function exportAll(): Promise<string[]> {
    await commander.command('unpause');
    const done: string[] = [];
    for (let isDone = false; !isDone;) {
      const { start_runs } = await commander.step();
      const ids = start_runs.map(({ run_id }) => run_id).filter((id) => !done.includes(id));
      for (const id of ids) await publish(id);
      done.push(...ids);
      isDone = ids.length === 0;
    }
    return done;
  }

  async function createScheduledExport(): Promise<string[]> {
    await createLaggingExport(journal, commander.batchExportId, 4);
    return exportAll();
  }

  /** Completes the backfills whose runs have ended. */
  async function stepBackfills(): Promise<void> {
    const backfills = await readBackfills(pool, { batch_export_id: commander.batchExportId });
    for (const { id, finished_at } of backfills)
      if (finished_at === null) await advanceBackfill(journal, policies, id);
  }

  const collapse = (more: Partial<HistoryRetention> = {}, isOver = never) =>
    collapseHistory(journal, { ...everything, ...more }, storedRows, isOver);

  /** The rows of the ledger, without what a collapse adds. */
  const ledger = async (): Promise<unknown[]> => {
    const { rows } = await pool.query<object>(
      `select to_jsonb(interval) - '{collapsed_generation,collapsed_config_version}'::text[] as row
       from exportd.intervals interval where batch_export_id = $1 order by data_interval_start`,
      [commander.batchExportId],
    );
    return rows;
  };
  const countOf = async (from: string): Promise<number> => {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*) as count from ${from.startsWith('exportd') ? '' : 'exportd.'}${from}`,
      [commander.batchExportId],
    );
    return rows[0]?.count ?? 0;
  };
  const runCount = () => countOf('batch_export_runs where batch_export_id = $1');

  /** The read models are those that a rebuild makes. */
  async function expectRebuildable(): Promise<void> {
    const before = await projectionContents(pool);
    await rebuild(pool);
    expect(await projectionContents(pool)).toBe(before);
  }

  it('leaves the ledger and a digest of runs and backfills, before and after a rebuild', async () => {
    const scheduled = await createScheduledExport();
    expect(scheduled.length).toBeGreaterThanOrEqual(4);
    const backfilled = await runs.create(20);
    await publish(backfilled);
    await stepBackfills();
    const before = await ledger();
    expect(await collapse()).toMatchObject({ intervals: scheduled.length + 1, backfills: 1 });
    expect(await ledger()).toEqual(before);
    for (const table of ['batch_export_runs', 'backfills', 'destination_objects', 'interval_comparisons'])
      expect([table, await countOf(`${table} where batch_export_id = $1`)]).toEqual([table, 0]);
    const { rows: events } = await pool.query<{ type: string }>(
      `select event_type as type from exportd.journal_events event where stream_id = $1
         or data->>'batch_export_id' = $1::text order by global_position`,
      [commander.batchExportId],
    );
    expect(events.map(({ type }) => type)).toEqual([
      'BatchExportCreated',
      'BatchExportUnpaused',
      'IntervalScheduled',
      'BackfillRequested',
      'HistoryCollapsed',
      'HistoryCollapsed',
    ]);
    expect(await countOf('journal_streams where stream_id <> $1 and collapsed_at is not null')).toBe(0);
    await expectRebuildable();
    // Nothing is left for the next call.
    expect(await collapse()).toEqual({ intervals: 0, backfills: 0, purged_exports: 0 });
  });

  it('deletes the log lines of collapsed runs, and no others', async () => {
    await commander.create();
    const id = await runs.create(5);
    await publish(id);
    await stepBackfills();
    const other = randomUUID();
    // More than one statement deletes.
    await pool.query(
      `insert into exportd.log_lines (team_id, batch_export_id, run_id, level, message)
       select 1, $1, run.id, 'INFO', 'A line.' from unnest(array[$2, $3, null]::uuid[]) as run (id), generate_series(1, 1001)`,
      [commander.batchExportId, id, other],
    );
    await collapse();
    const { rows } = await pool.query<{ run_id: string | null; lines: number }>(
      `select run_id, count(*) as lines from exportd.log_lines where batch_export_id = $1 and message = 'A line.'
       group by 1 order by 1`,
      [commander.batchExportId],
    );
    expect(rows).toEqual([
      { run_id: other, lines: 1001 },
      { run_id: null, lines: 1001 },
    ]);
    expect(await countOf(`log_lines where batch_export_id = $1 and run_id = '${id}'`)).toBe(0);
  });

  it('keeps a backfill if a run was created after it was read', async () => {
    await commander.create();
    await publish(await runs.create(5));
    await stepBackfills();
    const other = await pool.connect();
    try {
      await other.query('begin');
      await other.query('select from exportd.journal_streams where stream_id = $1 for update', [
        commander.batchExportId,
      ]);
      const collapsed = collapse({ newestRuns: 10 });
      await waitFor(async () => {
        const { rows } = await pool.query(
          'select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))',
          [(await other.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid],
        );
        return rows.length > 0;
      }, 'the collapse to wait');
      await other.query(
        `update exportd.batch_export_runs set position = position + 1 where batch_export_id = $1`,
        [commander.batchExportId],
      );
      await other.query('commit');
      expect(await collapsed).toMatchObject({ backfills: 0 });
    } finally {
      other.release();
    }
    expect(await collapse({ newestRuns: 10 })).toMatchObject({ backfills: 1 });
  });

  const startOf = (minutes: number): string => minuteBefore(minutes).start_at;
  const skip = (from: number, to: number) =>
    journal.transaction(async ({ lock }) => {
      const stream = await lock(batchExportDecider, commander.batchExportId);
      await stream.append('skipped', [
        { type: 'IntervalsSkipped', data: { start: startOf(from), end: startOf(to), reason: 'paused' } },
      ]);
    });

  it('keeps the steps of the schedule before a range that it skips', async () => {
    await createLaggingExport(journal, commander.batchExportId, 7);
    await skip(5, 3);
    await exportAll();
    // Five runs around the range, which is one row, and one run for each minute that ended since the tests started.
    const { length } = await ledger();
    expect(length).toBeGreaterThanOrEqual(7);
    await collapse();
    expect(await runCount()).toBe(0);
    await expectRebuildable();
    expect(await ledger()).toHaveLength(length);
  });

  it('splits a skipped range as the runs did, when it is rebuilt', async () => {
    await commander.create({ start_at: null });
    const inside = [await runs.create(7), await runs.create(5)];
    for (const id of inside) await publish(id);
    await stepBackfills();
    await skip(9, 3);
    expect(await ledger()).toHaveLength(5);
    await collapse();
    expect(await ledger()).toHaveLength(5);
    await expectRebuildable();
  });

  describe('keeps the runs of an interval', () => {
    const old = async (): Promise<string> => {
      await commander.create();
      const id = await runs.create(5);
      await publish(id);
      await stepBackfills();
      return id;
    };
    it.each<readonly [reason: string, arrange: () => Promise<unknown>]>([
      ['that is a gap', async () => endWith('Failed')],
      [
        'whose retry is due',
        async () => {
          await commander.command('pause');
          await endWith('FailedRetryable');
        },
      ],
      [
        'whose newest run is held',
        async () => {
          const second = await runs.retry(await old());
          await runs.start(second);
          await runs.hold(second, policies);
        },
      ],
      ['with an active run', async () => runs.start(await runs.retry(await old()))],
      [
        'with an object that is still to be deleted',
        async () => {
          await publish(await runs.retry(await old()));
          await stepBackfills();
        },
      ],
      [
        'with a generation that stays in a former bucket',
        async () => {
          await pool.query(
            `insert into exportd.destination_objects (position, batch_export_id, run_id, config_version,
               data_interval_start, data_interval_end, generation, object_type, key, publish_claimed)
             select -position, batch_export_id, gen_random_uuid(), 0, data_interval_start, data_interval_end, 0, 'file',
               'elsewhere', true
             from exportd.batch_export_runs where id = $1`,
            [await old()],
          );
        },
      ],
      [
        'of a backfill that goes on',
        async () => {
          await commander.create();
          await commander.command('backfill', {
            start_at: minuteBefore(6).start_at,
            end_at: minuteBefore(5).end_at,
          });
          const [first] = await readRuns(pool, { batch_export_id: commander.batchExportId });
          await publish(first?.id ?? '');
        },
      ],
      [
        'with late rows',
        async () => {
          await pool.query(
            `update exportd.interval_comparisons set outcome = 'rows_added' where run_id = $1`,
            [await old()],
          );
        },
      ],
      [
        'that waits for its repair',
        async () => {
          await pool.query(
            `insert into exportd.interval_repairs (batch_export_id, data_interval_start, data_interval_end, run_id)
             select batch_export_id, data_interval_start, data_interval_end, id from exportd.batch_export_runs
             where id = $1`,
            [await old()],
          );
        },
      ],
      [
        'that was exported while transactions of the source were open',
        async () => {
          await commander.create();
          const id = await runs.create(5);
          await recorder.recordCount(id, {
            records_total_count: 3,
            fingerprint: fingerprintOf(3),
            settled: false,
            barrier: { phase: 'prepared', blockers: ['1/test'] },
            split_keys: [],
          });
          await publish(id);
          await stepBackfills();
        },
      ],
    ])('%s', async (_, arrange) => {
      await arrange();
      const before = await runCount();
      expect(before).toBeGreaterThan(0);
      await collapse();
      expect(await runCount()).toBe(before);
      // No event made it, so that no rebuild would make it again.
      await pool.query('delete from exportd.destination_objects where position < 0');
    });

    const endWith = async (status: 'Failed' | 'FailedRetryable'): Promise<void> => {
      await commander.create();
      await endRun(journal, policies, await runs.create(5), { status, latest_error: 'A reason.' });
      await stepBackfills();
    };

    it.each([
      ['that is not old enough', { historyMs: 3_600_000 }],
      ['that is among the newest', { newestRuns: 1 }],
    ])('%s', async (_, retention) => {
      await old();
      await collapse(retention);
      expect(await runCount()).toBe(1);
    });
  });

  describe('in a database of its own', () => {
    const own = useTestDatabase();
    const ownJournal = openJournal(own.pool);
    const ownRecorder = createRunRecorder(ownJournal);

    /** Exports a minute with a backfill that then completes. */
    const exportMinute = async (minutes: number): Promise<string> => {
      const id = await runs.create(minutes);
      await publish(id);
      const { rows } = await own.pool.query<{ id: string }>(
        'select id from exportd.backfills where finished_at is null',
      );
      for (const backfill of rows) await advanceBackfill(ownJournal, policies, backfill.id);
      return id;
    };
    /** Collapses until `isOver` was called so often. */
    const collapseUntil = async (calls: number): Promise<void> => {
      let count = 0;
      await collapseHistory(ownJournal, everything, storedRows, () => (count += 1) > calls);
    };
    /** Deletes an event of each collapsed stream, as a killed process does. */
    const deleteOldest = () =>
      own.pool.query(
        `delete from exportd.journal_events where global_position in (
           select min(global_position) from exportd.journal_events event
           join exportd.journal_streams stream using (stream_type, stream_id)
           where stream.collapsed_at is not null group by stream_type, stream_id) returning event_type`,
      );
    const streams = async (): Promise<number> => {
      const { rows } = await own.pool.query(
        `select from exportd.journal_streams where stream_type <> 'batch_export'`,
      );
      return rows.length;
    };

    beforeEach(async () => {
      commander = createCommander(ownJournal, policies);
      runs = createSimulatedRuns(ownJournal, ownRecorder, commander);
      await commander.create();
    });

    it('answers late steps of a collapsed run as those of a run that has ended', async () => {
      const id = await exportMinute(5);
      await collapseUntil(5);
      expect((await deleteOldest()).rowCount).toBe(2);
      const late = async () => {
        await expect(ownRecorder.startExport(id, 0)).rejects.toMatchObject({ name: 'RunEnded' });
        await expect(ownRecorder.complete(id, 1, 'manifest')).rejects.toMatchObject({ name: 'RunEnded' });
        expect((await commander.command('retry', { run_id: id })).command).toMatchObject({
          status: 'rejected',
          outcome: { code: 'not_found' },
        });
      };
      await late();
      await collapseHistory(ownJournal, everything, storedRows, never);
      await late();
      expect(await streams()).toBe(0);
      // The next generation is above those of the collapsed runs.
      const again = await runs.create(5);
      expect(again).not.toBe(id);
      expect(await runs.start(again)).toMatchObject({ generation: 2 });
    });

    it('can be killed between any two batches, and in the middle of a stream', async () => {
      for (let calls = 1; calls <= 7; calls += 1) {
        await exportMinute(10 + 3 * calls);
        await collapseUntil(calls);
        await deleteOldest();
        const before = await projectionContents(own.pool);
        await rebuild(own.pool);
        expect(await projectionContents(own.pool)).toBe(before);
      }
      await collapseHistory(ownJournal, everything, storedRows, never);
      const { rows } = await own.pool.query(
        'select from exportd.intervals where batch_export_id = $1 and collapsed_generation is not null',
        [commander.batchExportId],
      );
      expect(rows).toHaveLength(7);
    });
  });

  it('purges an export that was deleted long ago', async () => {
    await createScheduledExport();
    const id = await runs.create(20);
    await runs.start(id);
    await commander.command('delete');
    await pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
       values ($1, 7, 'S3', '{}')`,
      [commander.batchExportId],
    );
    const others = await countOf('journal_events where stream_id <> $1');
    await expect(
      pool.query('delete from exportd.destination_configs where batch_export_id = $1', [
        commander.batchExportId,
      ]),
    ).rejects.toThrow(/append-only/);
    expect(await collapse({ historyMs: undefined, deletedExportMs: 3_600_000 })).toMatchObject({
      purged_exports: 0,
    });
    await buildProjections(pool);
    const builder = await pool.connect();
    await builder.query('select pg_advisory_lock($1)', [builderLock]);
    // What is built may have read the export already.
    expect(await collapse({ historyMs: undefined, deletedExportMs: 0 })).toMatchObject({ purged_exports: 0 });
    await builder.query('select pg_advisory_unlock($1)', [builderLock]);
    builder.release();
    expect(await collapse({ historyMs: undefined, deletedExportMs: 0 })).toMatchObject({ purged_exports: 1 });
    const { rows: tables } = await pool.query<{ name: string; column: string }>(
      `select table_schema || '.' || table_name as name, column_name as column from information_schema.columns
       where table_schema in ('exportd', 'exportd_next') and column_name in ('batch_export_id', 'stream_id')`,
    );
    for (const { name, column } of tables)
      expect([name, await countOf(`${name} where ${column} = $1`)]).toEqual([name, 0]);
    expect(await countOf('journal_events where stream_id <> $1')).toBeLessThan(others);
    await switchProjections(pool);
    await expectRebuildable();
  });

  it('deletes commands that have paused no export, once their key has expired', async () => {
    await commander.create();
    const id = await runs.create(5);
    await commander.command('cancelRun', { run_id: id });
    await commander.command('pause');
    const names = async () => (await readCommands(pool, commander.batchExportId)).map(({ name }) => name);
    await collapse({ idempotencyKeyMs: 3_600_000 });
    expect(await names()).toEqual(['create', 'backfill', 'cancelRun', 'pause']);
    await collapse();
    expect(await names()).toEqual(['pause']);
  });
});
