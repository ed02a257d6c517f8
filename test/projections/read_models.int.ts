import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { attemptOf, runDecider } from '../../src/domain/run.ts';
import type { Upcasts } from '../../src/domain/event.ts';
import { createJournal, type FoldedEvent } from '../../src/journal/journal.ts';
import type { Projection } from '../../src/projections/projection.ts';
import { createReadModels, dropExpiredReadModels } from '../../src/projections/read_models.ts';
import { openJournal, projections } from '../../src/projections/registry.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { definitionOf } from '../domain/definition.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';
import { fromSetUp } from '../setup/environment.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { projectionContents } from './projection_contents.ts';
import type { RunEvent } from '../../src/domain/run_events.ts';
import { readRun } from '../decisions/read_runs.ts';

const { pool, url } = useTestDatabase();
const current = createReadModels(projections);
const versionedWith = (...changed: readonly string[]): readonly Projection[] =>
  projections.map((projection) =>
    changed.includes(projection.name) ? { ...projection, version: projection.version + 1 } : projection,
  );
/** A version of exportd in which these read models have changed. */
const versionWith = (...changed: readonly string[]) => createReadModels(versionedWith(...changed));
const newer = versionWith('intervals');

const journal = openJournal(pool);
/** The journal of a process of the newer version. */
const newerJournal = createJournal(pool, { ...journal.projector, versions: newer.known });
const commander = createCommander(journal, quickPolicies());
const runs = createSimulatedRuns(journal, createRunRecorder(journal), commander);

const contents = () => projectionContents(pool);
const rename = async (by = journal): Promise<void> =>
  by.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, commander.batchExportId);
    const changes = { name: randomUUID() };
    await stream.append(`rename:${changes.name}`, [
      { type: 'BatchExportUpdated', data: { changes, schedule_effective_from: null } },
    ]);
  });
/** Which relation a table is, and in which schema. */
const idOf = async (table: string): Promise<number> => {
  const { rows } = await pool.query<{ id: number }>('select $1::regclass::oid as id', [table]);
  return rows[0]?.id ?? 0;
};
const schemas = async (): Promise<string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select nspname as name from pg_namespace where nspname in ('exportd_next', 'exportd_previous') order by 1`,
  );
  return rows.map(({ name }) => name);
};

beforeAll(async () => {
  await commander.create();
  const completed = await runs.create(3);
  await runs.publish(completed, await runs.start(completed), 'a');
  const failed = await runs.create(5);
  await runs.file(failed, await runs.start(failed), 'b');
  await losePart();
  await rename();
});

/** A run that sends parts again which its next attempt did not find: no progress, so its error stays. */
async function losePart(): Promise<void> {
  const id = await runs.create(7);
  const run = await runs.start(id);
  await runs.file(id, run, 'c', 50);
  const { generation } = await runs.upload(id, run, 'd');
  const step = { ...attemptOf(run, 0), generation, key: 'd' };
  const planned = (part_number: number, rows: number): RunEvent => ({
    type: 'RunPartPlanned',
    data: {
      ...step,
      part: {
        part_number,
        rows,
        bytes: rows * 30,
        crc32: '00000000',
        fingerprint: fingerprintOf(rows),
        rejected: 0,
        first: null,
        encoder_state: null,
        last: { inserted_at: `2026-11-01T10:00:0${part_number}.000000Z`, id: randomUUID() },
      },
    },
  });
  const events: RunEvent[] = [
    planned(1, 20),
    planned(2, 30),
    {
      type: 'RunAttemptFailed',
      data: { error_type: 'S3Error', latest_error: 'S3 is gone.', retried_until: null },
    },
    { type: 'RunUploadResumed', data: { ...step, part_numbers: [1], rows: 20, bytes: 600 } },
    planned(3, 10),
  ];
  for (const [index, event] of events.entries())
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, id);
      await stream.append(`step:${index}`, [event]);
    });
  const read = await readRun(pool, id);
  expect(read).toMatchObject({ records_completed: 100, latest_error: 'S3 is gone.' });
  expect(read.cursor).not.toBeNull();
}

/** Leaves the live read models in the current version, and nothing beside them. */
afterEach(async () => {
  await pool.query(
    'drop schema if exists exportd_next cascade; drop schema if exists exportd_previous cascade',
  );
  await pool.query(`update exportd.projection_versions set version = ($1::jsonb ->> name)::integer`, [
    JSON.stringify(current.known),
  ]);
});

describe('a new version of a read model', () => {
  it('is built beside the live one with what it reads, and switched; older processes append nothing then', async () => {
    const before = await contents();
    const [intervals, states, runsTable] = await Promise.all(
      ['exportd.intervals', 'exportd.stream_states', 'exportd.batch_export_runs'].map(idOf),
    );
    await newer.build(pool, { names: await newer.findChanged(pool) });
    expect((await newer.status(pool)).models.filter(({ next }) => next !== null)).toEqual([
      expect.objectContaining({ name: 'stream_states', next: newer.known.stream_states }),
      expect.objectContaining({
        name: 'intervals',
        next: newer.known.intervals,
        live: current.known.intervals,
      }),
    ]);
    // What was built is not live: older processes append as before.
    expect(await idOf('exportd.intervals')).toBe(intervals);
    await rename();
    const appended = await contents();
    expect(appended).not.toBe(before);

    const { versions } = await newer.switch(pool);
    expect(versions).toEqual({ stream_states: newer.known.stream_states, intervals: newer.known.intervals });
    expect(await contents()).toBe(appended);
    expect(await idOf('exportd_previous.intervals')).toBe(intervals);
    expect(await idOf('exportd_previous.stream_states')).toBe(states);
    expect(await idOf('exportd.batch_export_runs')).toBe(runsTable);
    await expect(rename()).rejects.toMatchObject({ name: 'ReadModelsDiffer' });
    expect(await contents()).toBe(appended);
    await rename(newerJournal);
  });

  it('has the events that were appended while it was built, also those that commit late', async () => {
    const release = Promise.withResolvers<undefined>();
    const appended = Promise.withResolvers<undefined>();
    const late = journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, randomUUID());
      await stream.append('late', [
        {
          type: 'BatchExportCreated',
          data: {
            team_id: 1,
            definition: definitionOf({}),
            scheduled_until: '2026-11-01T10:00:00.000Z',
            paused: true,
          },
        },
      ]);
      appended.resolve(undefined);
      await release.promise;
    });
    await appended.promise;
    await rename();
    let built = false;
    const build = newer.build(pool, { names: projections.map(({ name }) => name), eventsPerBatch: 3 });
    const ended = build.then(() => (built = true));
    let polls = 0;
    await waitFor(async () => {
      const { next } = await newer.status(pool);
      if (next) polls += 1;
      return built || polls > 5;
    }, 'the build to end, or to wait for the open append');
    release.resolve(undefined);
    await Promise.all([late, ended]);
    for (let count = 0; count < 5; count += 1) await rename();
    const before = await contents();
    await newer.switch(pool);
    expect(await contents()).toBe(before);
  });

  it('continues where a killed process was, and is equal byte for byte', async () => {
    const before = await contents();
    let batches = 0;
    const abort = new Error('stopped');
    await expect(
      current.build(pool, {
        eventsPerBatch: 4,
        onProgress: () => {
          batches += 1;
          if (batches === 2) throw abort;
        },
      }),
    ).rejects.toBe(abort);
    const reached = (await current.status(pool)).next;
    expect(reached).toMatchObject({ events: 8 });

    const holder = await pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from exportd_next.build for update');
      const main = join(import.meta.dirname, '../../src/cli/main.ts');
      const child = spawn(process.execPath, [main, 'projections', 'rebuild', '--all'], {
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
          DATABASE_URL: url,
          EXPORTD_DATA_DIR: '/nonexistent',
        },
        stdio: 'ignore',
      });
      const exit = once(child, 'exit');
      await waitFor(async () => {
        const { rows } = await pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
             and query like '%update exportd_next.build%'`,
        );
        return rows.length > 0;
      }, 'the command to fold its first batch');
      child.kill('SIGKILL');
      await exit;
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect((await current.status(pool)).next).toMatchObject({ events: 8, position: reached?.position });

    const positions: number[] = [];
    const events = await current.build(pool, {
      eventsPerBatch: 4,
      onProgress: ({ position }) => positions.push(position),
    });
    expect(positions[0]).toBeGreaterThan(reached?.position ?? Infinity);
    expect(events).toBeGreaterThan(8);
    await current.switch(pool);
    expect(await contents()).toBe(before);
  });

  it('is built from the first event if the journal was set back since', async () => {
    await current.build(pool);
    await pool.query('update exportd_next.build set last_event = $1', [randomUUID()]);
    await expect(current.switch(pool)).rejects.toMatchObject({ name: 'CannotSwitch' });
    const positions: number[] = [];
    await current.build(pool, { eventsPerBatch: 4, onProgress: ({ position }) => positions.push(position) });
    expect(positions.length).toBeGreaterThan(3);
  });

  it('keeps the privileges of other roles', async () => {
    const role = `reader_${randomUUID().slice(0, 8)}`;
    await pool.query(`create role ${role}; grant select on exportd.batch_exports to ${role}`);
    try {
      await current.rebuild(pool);
      const { rows } = await pool.query(
        `select has_table_privilege($1, 'exportd.batch_exports', 'select') as reads,
           has_table_privilege($1, 'exportd.batch_exports', 'insert') as writes`,
        [role],
      );
      expect(rows).toEqual([{ reads: true, writes: false }]);
    } finally {
      await pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

describe('going back to the former version', () => {
  it('brings its tables up to date, and the newer version comes back without a rebuild', async () => {
    await newer.ensure(pool);
    const newerTable = await idOf('exportd.intervals');
    const formerTable = await idOf('exportd_previous.intervals');
    await rename(newerJournal);
    const before = await contents();

    await current.switch(pool);
    expect(await idOf('exportd.intervals')).toBe(formerTable);
    expect(await contents()).toBe(before);
    await expect(rename(newerJournal)).rejects.toMatchObject({ name: 'ReadModelsDiffer' });
    await rename();
    const after = await contents();

    // An older "exportd migrate" changes nothing, the newer one switches.
    await newer.ensure(pool);
    expect(await idOf('exportd.intervals')).toBe(newerTable);
    expect(await contents()).toBe(after);
    await expect(current.ensure(pool)).rejects.toMatchObject({ name: 'ReadModelsDiffer' });
  });

  it('is refused without read models of that version', async () => {
    await newer.ensure(pool);
    await expect(versionWith('runs').switch(pool)).rejects.toMatchObject({
      name: 'CannotSwitch',
      message: expect.stringContaining(`exportd_previous has intervals ${current.known.intervals}`),
    });
    await expect(newer.switch(pool)).rejects.toMatchObject({ name: 'CannotSwitch' });
    await expect(rename()).rejects.toMatchObject({ name: 'ReadModelsDiffer' });
  });

  it('is possible until its time is over', async () => {
    await newer.ensure(pool, { keepPreviousMs: 60_000 });
    await dropExpiredReadModels(pool);
    expect(await schemas()).toEqual(['exportd_previous']);
    await pool.query(
      `update exportd_previous.build set drop_after = clock_timestamp() - interval '1 second'`,
    );
    await dropExpiredReadModels(pool);
    expect(await schemas()).toEqual([]);
    await expect(current.switch(pool)).rejects.toMatchObject({
      message: expect.stringContaining('none were built, and none are left of a switch'),
    });
  });
});

describe('an event with a new schema_version', () => {
  // In a next version, an update has its changes as "set".
  interface NextUpdate {
    readonly set: { readonly name?: string };
    readonly schedule_effective_from: string | null;
  }
  const upcasts: Upcasts = {
    BatchExportUpdated: [
      (data) => {
        const { changes, ...rest } = data as { changes: { name?: string } };
        return { ...rest, set: changes };
      },
    ],
  };
  const nextProjections = versionedWith('batch_exports', 'stream_states').map((projection): Projection => ({
    ...projection,
    wants: (event) => projection.wants(withChanges(event)),
    fold: (rows, event) => projection.fold(rows, withChanges(event)),
  }));
  /** What the folds of the next version do with the shape that they know: here they turn it into that of today. */
  function withChanges(event: FoldedEvent): FoldedEvent {
    if (event.stream_type !== 'batch_export' || event.stored.type !== 'BatchExportUpdated') return event;
    const data: object = event.stored.data;
    seen.push(data);
    const { set, ...rest } = data as NextUpdate;
    return { ...event, stored: { ...event.stored, data: { ...rest, changes: set } } };
  }
  const seen: unknown[] = [];

  it('is read from stored ones of former versions, and stored with its version', async () => {
    await rename();
    const next = createReadModels(nextProjections, upcasts);
    await next.build(pool, { names: ['batch_exports'] });
    expect(seen.length).toBeGreaterThan(1);
    for (const data of seen)
      expect(data).toEqual(expect.objectContaining({ set: { name: expect.any(String) } }));

    const ofNext = createJournal(pool, {
      ...journal.projector,
      upcasts,
      openFold: (connection) => ({
        ...journal.projector.openFold(connection),
        plan: () => Promise.resolve({ reads: null, fold: () => undefined }),
      }),
    });
    await ofNext.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, commander.batchExportId);
      await stream.append('next', [
        { type: 'BatchExportUpdated', data: { changes: {}, schedule_effective_from: null } },
      ]);
    });
    const { rows } = await pool.query<{ event_type: string; schema_version: number }>(
      'select distinct event_type, schema_version from exportd.journal_events order by 2, 1',
    );
    expect(rows).toContainEqual({ event_type: 'BatchExportUpdated', schema_version: 1 });
    expect(rows.filter(({ schema_version }) => schema_version === 2)).toEqual([
      { event_type: 'BatchExportUpdated', schema_version: 2 },
    ]);
  });

  it('is unknown to an older version, which marks the stream', async () => {
    await current.rebuild(pool);
    const { rows } = await pool.query(
      'select stream_id, unknown_event from exportd.stream_states where unknown_event is not null',
    );
    expect(rows).toEqual([
      { stream_id: commander.batchExportId, unknown_event: 'BatchExportUpdated of version 2' },
    ]);
  });
});
