import { randomUUID } from 'node:crypto';
import { describe, expect, it, jest } from '@jest/globals';
import { batchExportDecider, type BatchExportEvent } from '../../src/domain/batch_export.ts';
import {
  type Connection,
  createPool,
  inTransaction,
  isDatabaseUnavailable,
} from '../../src/journal/database.ts';
import { CauseMismatch, readState } from '../../src/journal/journal.ts';
import {
  ensureProjections,
  findChangedProjections,
  openJournal,
  rebuild,
  reportVersions,
} from '../../src/projections/registry.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { readLog } from '../decisions/read_log.ts';
import { definitionOf } from '../domain/definition.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { readStream } from './read_stream.ts';

describe('the journal', () => {
  const { pool } = useTestDatabase();
  const journal = openJournal(pool);

  const created: BatchExportEvent = {
    type: 'BatchExportCreated',
    data: {
      team_id: 1,
      definition: definitionOf({ name: 'Hourly' }),
      scheduled_until: '2026-11-01T10:00:00.000Z',
      paused: false,
    },
  };
  const paused: BatchExportEvent = { type: 'BatchExportPaused', data: { last_paused_at: null } };
  const unpaused: BatchExportEvent = { type: 'BatchExportUnpaused', data: {} };

  const append = (id: string, cause: string, events: BatchExportEvent[]) =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, id);
      return stream.append(cause, events);
    });

  it('writes the state of a stream once per transaction', async () => {
    const id = randomUUID();
    const writes = await journal.transaction(async (transaction) => {
      // The connection of the transaction writes what is pending with the one below it.
      const query = jest.spyOn(Object.getPrototypeOf(transaction.connection) as Connection, 'query');
      const stream = await transaction.lock(batchExportDecider, id);
      await stream.append('command:1', [created]);
      await stream.append('command:2', [paused, unpaused]);
      const again = await transaction.lock(batchExportDecider, id);
      expect(again.state()).toEqual(stream.state());
      await again.append('command:3', [paused]);
      return () => {
        const states = query.mock.calls.filter(([call]) =>
          JSON.stringify(call).includes('into exportd.stream_states'),
        );
        query.mockRestore();
        return states.length;
      };
    });
    expect(writes()).toBe(1);
    expect(await readState(journal, batchExportDecider, id)).toMatchObject({ status: 'live', paused: true });
    const { rows } = await pool.query('select version from exportd.stream_states where stream_id = $1', [id]);
    expect(rows).toEqual([{ version: 4 }]);
  });

  it('writes what follows from an event with one statement, before others read it', async () => {
    const id = randomUUID();
    await append(id, 'command:1', [created]);
    await journal.transaction(async (transaction) => {
      const { connection } = transaction;
      const query = jest.spyOn(Object.getPrototypeOf(connection) as Connection, 'query');
      const stream = await transaction.lock(batchExportDecider, id);
      await stream.append('command:2', [paused]);
      const readPaused = () =>
        connection.query<{ paused: boolean; version: number }>(
          `select paused, (select version from exportd.stream_states where stream_id = id)
           from exportd.batch_exports where id = $1`,
          [id],
        );
      expect((await readPaused()).rows).toEqual([{ paused: true, version: 2 }]);
      // To lock the stream, to store the event, and to write what follows from it.
      expect(query.mock.calls).toHaveLength(4);
      await stream.append('command:3', [unpaused]);
      expect((await readPaused()).rows).toEqual([{ paused: false, version: 2 }]);
      query.mockRestore();
    });
    expect(await readState(journal, batchExportDecider, id)).toMatchObject({ paused: false });
  });

  describe('with a subscriber', () => {
    /** A journal whose subscriber stores a line of each event, and fails for those of type `fails`. */
    const subscribe = (fails?: BatchExportEvent['type']) => {
      const followed: string[] = [];
      const subscribed = openJournal(pool, {
        subscribers: [
          async (connection, { stored }) => {
            await connection.query(
              `insert into exportd.log_lines (team_id, batch_export_id, level, message) values (1, $1, 'INFO', $2)`,
              [stored.stream_id, stored.type],
            );
            if (stored.type === fails) throw new Error('The subscriber fails.');
            return () => followed.push(stored.type);
          },
        ],
      });
      const appendTo = (id: string, cause: string, events: BatchExportEvent[], fault?: Error) =>
        subscribed.transaction(async (transaction) => {
          const stream = await transaction.lock(batchExportDecider, id);
          await stream.append(cause, events);
          expect(followed).toEqual([]);
          if (fault) throw fault;
        });
      const kept = async (id: string) => ({
        events: (await readStream(pool, 'batch_export', id)).length,
        lines: await readLog(pool, { batch_export_id: id }),
      });
      return { appendTo, kept, followed };
    };

    it('stores what it stores with the events, and goes on after the commit', async () => {
      const id = randomUUID();
      const { appendTo, kept, followed } = subscribe();
      await appendTo(id, 'command:1', [created, paused]);
      expect(followed).toEqual(['BatchExportCreated', 'BatchExportPaused']);
      followed.length = 0;
      // The same cause appends nothing.
      await appendTo(id, 'command:1', [created, paused]);
      expect(followed).toEqual([]);
      expect(await kept(id)).toEqual({ events: 2, lines: ['BatchExportCreated', 'BatchExportPaused'] });
    });

    it.each([
      ['the decision fails', undefined, new Error('The decision fails.')],
      ['the subscriber fails', 'BatchExportPaused' as const, undefined],
    ])('leaves nothing when %s', async (_, fails, fault) => {
      const id = randomUUID();
      const { appendTo, kept, followed } = subscribe(fails);
      await expect(appendTo(id, 'command:1', [created, paused], fault)).rejects.toThrow(/ fails\.$/);
      expect(followed).toEqual([]);
      expect(await kept(id)).toEqual({ events: 0, lines: [] });
    });
  });

  describe('beside another version of exportd', () => {
    const setVersion = (change: string) =>
      pool.query(`update exportd.projection_versions set version = version ${change} where name = 'runs'`);
    const newerEvent = (id: string) =>
      pool.query(
        `with stored as (
           insert into exportd.journal_events (stream_type, stream_id, stream_version, event_id, cause, event_type, data)
           values ('batch_export', $1, 2, gen_random_uuid(), 'newer', 'BatchExportArchived', '{}'))
         update exportd.journal_streams set version = 2 where stream_id = $1`,
        [id],
      );

    it.each([
      ['newer', '+ 1', 'Update this process.'],
      ['older', '- 1', 'Run "exportd migrate".'],
    ])('appends nothing when the read models are those of a %s one', async (which, change, advice) => {
      const id = randomUUID();
      await setVersion(change);
      const error: unknown = await append(id, 'command:1', [created]).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        name: 'ReadModelsDiffer',
        message: expect.stringMatching(
          new RegExp(`of an? ${which} version of exportd: runs has version .* instead of .*\\. ${advice}`),
        ),
      });
      expect(classifyError(error)).toMatchObject({ owner: 'operator', permanent: false });
      expect(await reportVersions(pool)).toEqual({ differs: (error as Error).message, needs_newer: null });
      // As after the update of the process.
      await setVersion(change === '+ 1' ? '- 1' : '+ 1');
      expect(await readStream(pool, 'batch_export', id)).toEqual([]);
      await append(id, 'command:1', [created]);
      expect(await reportVersions(pool)).toEqual({ differs: null, needs_newer: null });
    });

    it('rebuilds nothing that a newer one has made', async () => {
      await setVersion('+ 1');
      await expect(ensureProjections(pool)).rejects.toThrow(/a newer version/);
      await expect(rebuild(pool)).rejects.toThrow(/a newer version/);
      await setVersion('- 1');
    });

    it('keeps a state without events that only a newer one knows, until that one migrates', async () => {
      const id = randomUUID();
      await append(id, 'command:1', [created]);
      await newerEvent(id);
      await rebuild(pool);
      expect(await readState(journal, batchExportDecider, id)).toMatchObject({
        status: 'live',
        paused: false,
      });
      expect(await reportVersions(pool)).toMatchObject({
        needs_newer: expect.stringMatching(/events of 1 stream, whose states lack them.*"exportd migrate"/),
      });
      expect(await findChangedProjections(pool)).not.toEqual([]);
      // The stream can be appended to.
      await append(id, 'command:2', [paused]);
      expect(await readState(journal, batchExportDecider, id)).toMatchObject({ paused: true });
    });
  });

  it('returns the stored events when a cause is appended again', async () => {
    const id = randomUUID();
    const first = await append(id, 'command:1', [created]);
    const again = await append(id, 'command:1', [created]);
    expect(again).toEqual(first);
    expect(await readStream(pool, 'batch_export', id)).toHaveLength(1);
  });

  it('rejects another event with the same cause', async () => {
    const id = randomUUID();
    await append(id, 'command:1', [created]);
    await expect(append(id, 'command:1', [paused])).rejects.toThrow(CauseMismatch);
  });

  it('rejects more or fewer events with the same cause, and stores none of them', async () => {
    const id = randomUUID();
    await append(id, 'command:1', [created]);
    await append(id, 'command:2', [paused, unpaused]);
    await expect(append(id, 'command:1', [created, paused])).rejects.toThrow(CauseMismatch);
    await expect(append(id, 'command:2', [paused, unpaused, paused])).rejects.toThrow(CauseMismatch);
    expect((await readStream(pool, 'batch_export', id)).map(({ type }) => type)).toEqual([
      'BatchExportCreated',
      'BatchExportPaused',
      'BatchExportUnpaused',
    ]);
    expect(await readState(journal, batchExportDecider, id)).toMatchObject({ status: 'live', paused: false });
  });

  it('stores the events of a cause, in their order, and reads what follows from them with one statement', async () => {
    const id = randomUUID();
    await append(id, 'command:1', [created]);
    const sent = await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, id);
      const query = jest.spyOn(Object.getPrototypeOf(transaction.connection) as Connection, 'query');
      await stream.append('command:2', [paused, unpaused, paused]);
      const count = query.mock.calls.length;
      query.mockRestore();
      return count;
    });
    expect(sent).toBe(1);
    const stored = await readStream(pool, 'batch_export', id);
    expect(stored.map(({ type, stream_version }) => [stream_version, type])).toEqual([
      [1, 'BatchExportCreated'],
      [2, 'BatchExportPaused'],
      [3, 'BatchExportUnpaused'],
      [4, 'BatchExportPaused'],
    ]);
    const positions = stored.map(({ global_position }) => global_position);
    expect(positions).toEqual(positions.toSorted((one, other) => one - other));
  });

  it('serializes the writers of a stream, without gaps in its versions', async () => {
    const id = randomUUID();
    await append(id, 'created', [created]);
    const toggles = Array.from({ length: 20 }, (_, index) =>
      append(id, `toggle:${index}`, [index % 2 === 0 ? paused : unpaused]),
    );
    await Promise.all(toggles);
    const versions = (await readStream(pool, 'batch_export', id)).map((event) => event.stream_version);
    expect(versions).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
  });

  it('rolls back events and read models of a failed transaction', async () => {
    const id = randomUUID();
    const failing = journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, id);
      await stream.append('created', [created]);
      throw new Error('after the append');
    });
    await expect(failing).rejects.toThrow('after the append');
    expect(await readStream(pool, 'batch_export', id)).toEqual([]);
    const { rows } = await pool.query('select from exportd.batch_exports where id = $1', [id]);
    expect(rows).toEqual([]);
  });

  it.each([
    ['update', "update exportd.journal_events set cause = 'other'"],
    ['delete', 'delete from exportd.journal_events'],
    ['truncate', 'truncate exportd.journal_events'],
  ])('makes the database reject %s', async (_, statement) => {
    await append(randomUUID(), 'created', [created]);
    await expect(pool.query(statement)).rejects.toThrow(/append-only/);
  });
});

describe('a database', () => {
  const database = useTestDatabase();

  const errorOf = (statement: string, pool = database.pool): Promise<unknown> =>
    pool.query(statement).then(
      () => 'no error',
      (error: unknown) => error,
    );

  it('is unavailable when nothing listens at its address', async () => {
    const nowhere = createPool('postgresql://postgres@127.0.0.1:1/nowhere', { max: 1 });
    expect(isDatabaseUnavailable(await errorOf('select 1', nowhere))).toBe(true);
    await nowhere.end();
  });

  it('is unavailable when it terminates the session', async () => {
    expect(isDatabaseUnavailable(await errorOf('select pg_terminate_backend(pg_backend_pid())'))).toBe(true);
  });

  it.each([
    'select * from missing',
    'select 1 / 0',
    'select pg_cancel_backend(pg_backend_pid()), pg_sleep(9)',
  ])('is available when a statement fails: %s', async (statement) => {
    expect(isDatabaseUnavailable(await errorOf(statement))).toBe(false);
  });
});

describe('connections that only allow reads, as after a failover', () => {
  const database = useTestDatabase();

  it('are replaced when a write is rejected, the idle ones too', async () => {
    const pool = createPool(database.url, { max: 3 });
    try {
      const connections = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
      for (const connection of connections)
        await connection.query('set session characteristics as transaction read only');
      for (const connection of connections) connection.release();
      const write = () =>
        inTransaction(pool, (connection) => connection.query('create table public.written as select 1'));
      const error: unknown = await write().catch((thrown: unknown) => thrown);
      expect([error, isDatabaseUnavailable(error)]).toEqual([
        expect.objectContaining({ code: '25006' }),
        true,
      ]);
      const isWritten = () =>
        write().then(
          () => true,
          () => false,
        );
      // A connection that is used again and again would never be closed because it is idle.
      await waitFor(isWritten, 'a write succeeds');
    } finally {
      await pool.end();
    }
  });
});
