import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { Settings } from '../../src/config/settings.ts';
import { classifyError } from '../../src/failures/classify_error.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { SourceBusy } from '../../src/source/source_connection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blocksOf, hourOf, neverAborted, sourceOf, wholeRange } from './rows.ts';

const database = useTestDatabase();
const hourOfProject = (team_id: number): RowRange => ({ ...hourOf('events'), team_id });

beforeAll(async () => {
  await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
    select team_id, gen_random_uuid(), 'event', 'user', t, t
    from generate_series(1, 4) team_id, lateral (select timestamptz '2026-11-01 10:30Z' as t) times;
    -- Statements of the gated projects wait until the gate opens, in steps of one hundredth of a second.
    create table public.gate (team_id integer primary key, counts_only boolean not null);
    create function public.pass_gate(project integer) returns boolean language plpgsql volatile as $$
      begin
        while exists (select from public.gate where team_id = project
            and not (counts_only and current_query() ilike 'copy%')) loop
          perform pg_sleep(0.01);
        end loop;
        return true;
      end $$;
    create view public.gated_events as select * from public.events where public.pass_gate(team_id);`);
});

let opened: Source[] = [];
afterEach(async () => {
  await database.pool.query('delete from public.gate');
  await Promise.all(opened.map((source) => source.close()));
  opened = [];
});

function openSource(settings: Partial<Settings>): Source {
  const source = sourceOf(database.url, settings);
  opened.push(source);
  return source;
}
const gatedSource = () =>
  openSource({ EXPORTD_EVENTS_RELATION: 'public.gated_events', EXPORTD_SOURCE_CONNECTIONS: 6 });
const closeGate = (teamIds: readonly number[], countsOnly: boolean) =>
  database.pool.query('insert into public.gate select team_id, $2 from unnest($1::int[]) team_id', [
    teamIds,
    countsOnly,
  ]);
const waitUntilGated = (sessions: number) =>
  waitFor(async () => {
    const { rowCount } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
    );
    return rowCount === sessions;
  }, `${sessions} statements that wait at the gate`);
const rowsIn = async (source: Source, range: RowRange) =>
  (await blocksOf(source, range)).reduce((sum, { rows }) => sum + rows, 0);

describe('slow statements of a project', () => {
  it('leave connections to other projects and to checks of the barrier', async () => {
    const source = gatedSource();
    await closeGate([1], false);
    const slow = Promise.allSettled(
      Array.from({ length: 5 }, () => [
        source.fingerprint(hourOfProject(1)),
        rowsIn(source, hourOfProject(1)),
      ]).flat(),
    );
    await waitUntilGated(3);
    expect(rowsOfFingerprint(await source.fingerprint(hourOfProject(2)))).toBe(1);
    expect(await rowsIn(source, hourOfProject(2))).toBe(1);
    expect(await source.checkBarrier('2026-11-01T11:00:00Z', { phase: 'settling' })).toMatchObject({
      state: { phase: 'open' },
    });
    await database.pool.query('delete from public.gate');
    // Those that waited too long for a connection are retried by their activities.
    const failures = (await slow).flatMap((read) =>
      read.status === 'rejected' ? [read.reason as unknown] : [],
    );
    expect(failures.filter((error) => !(error instanceof SourceBusy))).toEqual([]);
    expect(failures.length).toBeLessThan(10);
  });

  it('do not delay pages when all connections for counts are busy', async () => {
    const source = gatedSource();
    await closeGate([1, 2, 3], true);
    const counts = [1, 1, 2, 2, 3, 3].map((teamId) => source.fingerprint(hourOfProject(teamId)));
    await waitUntilGated(6);
    expect(await rowsIn(source, hourOfProject(1))).toBe(1);
    expect(await rowsIn(source, hourOfProject(4))).toBe(1);
    await database.pool.query('delete from public.gate');
    expect(await Promise.all(counts)).toHaveLength(6);
  });

  it('open no more connections than a worker may have, in however many threads', async () => {
    const source = openSource({
      EXPORTD_EVENTS_RELATION: 'public.gated_events',
      EXPORTD_SOURCE_CONNECTIONS: 2,
    });
    // Sessions of the sources of other tests may still be ending.
    const { rows: started } = await database.pool.query<{ at: Date }>('select clock_timestamp() as at');
    const encoders = createEncoderPool({ threads: 3 });
    const { pageThreads: threads } = encoders;
    const projects = [1, 2, 3, 4];
    await closeGate(projects, false);
    const reads = projects.map(async (teamId) => {
      const options = { blockBytes: 100_000, signal: neverAborted(), threads };
      for await (const block of source.heldBlocks(hourOfProject(teamId), wholeRange, options))
        threads.drop(block);
    });
    await waitUntilGated(2);
    await database.pool.query('delete from public.gate');
    await Promise.all(reads);
    const { rowCount } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and application_name = 'exportd'
         and backend_start > $1`,
      [started[0]?.at],
    );
    await encoders.close();
    const forChecks = 2;
    expect(rowCount).toBeLessThanOrEqual(2 + forChecks);
  });
});

describe('a locked relation', () => {
  it('fails reads after two seconds, as a fault of the operator, until it is unlocked', async () => {
    const source = openSource({ EXPORTD_SOURCE_STATEMENT_TIMEOUT: 60_000 });
    const owner = new pg.Client({ connectionString: database.url });
    await owner.connect();
    try {
      await owner.query('begin');
      await owner.query('lock table public.events in access exclusive mode');
      const reads = [
        source.fingerprint(hourOfProject(1)),
        source.countRows(hourOfProject(2)),
        rowsIn(source, hourOfProject(3)),
      ];
      const errors = await Promise.all(reads.map((read) => read.catch((error: unknown) => error)));
      expect(errors.map(classifyError)).toEqual(
        errors.map(() =>
          expect.objectContaining({ type: 'RelationLocked', owner: 'operator', permanent: false }),
        ),
      );
    } finally {
      await owner.end();
    }
    expect(rowsOfFingerprint(await source.fingerprint(hourOfProject(1)))).toBe(1);
    expect(await rowsIn(source, hourOfProject(3))).toBe(1);
  });
});
