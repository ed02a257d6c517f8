import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings, type Settings } from '../../../src/config/settings.ts';
import { builtInQueryKinds } from '../../../src/queries/built_in_kinds.ts';
import { createInlineExecutor } from '../inline_executor.ts';
import type { QueryExecutor } from '../../../src/queries/query_executor.ts';
import type { QueryProgress } from '../../../src/queries/query_kind.ts';
import { createProject } from '../../../src/http/accounts/projects.ts';
import { listProperties } from '../../../src/queries/property_definitions.ts';
import { connectQueriesToSource } from '../../../src/queries/query_source.ts';
import { runQuery } from '../../../src/queries/run_query.ts';
import { createThreadExecutor } from '../../../src/queries/threads/thread_executor.ts';
import { RelationNotFound } from '../../../src/source/relations.ts';
import type { SourceConnections } from '../../../src/source/source_connection.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { runTask } from './fake_environment.ts';

const database = useTestDatabase();
let settings: Settings;
let source: SourceConnections;
let threads: QueryExecutor;
beforeAll(() => {
  settings = readSettings({ DATABASE_URL: database.url, EXPORTD_QUERY_SLOTS: '1' });
  source = connectQueriesToSource(settings);
  threads = createThreadExecutor(settings);
});
afterAll(async () => {
  await Promise.all([source.close(), threads.close()]);
});

async function run(
  executor: QueryExecutor,
  query: Readonly<Record<string, unknown>>,
  { timeoutMs = 60_000, signal = new AbortController().signal, relation = 'public.events' } = {},
) {
  const { variables, project, now } = runTask('');
  const reports: QueryProgress[] = [];
  const output = await runQuery(
    { pool: database.pool, source, executor, settings: { ...settings, EXPORTD_EVENTS_RELATION: relation } },
    { form: { kind: String(query.kind), query }, variables, project, now, timeoutMs },
    { signal, progress: (progress) => reports.push(progress) },
  );
  const body = JSON.parse(new TextDecoder().decode(output.json)) as Record<string, unknown>;
  return { body, progress: reports.at(-1) };
}
const text = (query: string) => ({ kind: 'DialectQuery', query });
const slow = text('select count() from numbers(100000000000)');

describe('a query in a thread', () => {
  it('reads inferred types like one in the process, and none from a source that is down', async () => {
    const { pool } = database;
    const project = await createProject(pool, { name: 'Shop' });
    const down = connectQueriesToSource({ ...settings, SOURCE_DATABASE_URL: 'postgres://127.0.0.1:1/none' });
    const ask = (executor: QueryExecutor, from = source) => {
      const { variables, now, ...task } = runTask('select avg(properties.price) from events');
      return runQuery(
        { pool, source: from, executor, settings },
        { form: task, variables, project: { ...task.project, team_id: project.id }, now, timeoutMs: 60_000 },
        { signal: new AbortController().signal, progress: () => undefined },
      );
    };
    await pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       values ($1, gen_random_uuid(), 'bought', 'd', '{"price": 5}', now())`,
      [project.id],
    );
    await expect(ask(threads, down)).rejects.toThrow(/ECONNREFUSED/);
    expect(await listProperties(pool, project.id)).toEqual([]);
    for (const executor of [threads, createInlineExecutor(builtInQueryKinds)]) {
      const { json } = await ask(executor);
      expect(JSON.parse(new TextDecoder().decode(json))).toMatchObject({
        results: [[5]],
        notice: expect.stringContaining('1 of 1 values'),
      });
    }
    expect(await listProperties(pool, project.id)).toMatchObject([{ name: 'price', type: 'numeric' }]);
    await down.close();
  });

  it.each([
    ['rows in several messages', text("select number, repeat('ä', 300), null from numbers(5000) limit 5000")],
    ['no rows', text('select event from events')],
    ['trends', { kind: 'TrendsQuery', series: [{ kind: 'EventsNode', event: 'x' }] }],
    ['persons', { kind: 'ActorsQuery' }],
  ])('returns the same as in the process: %s', async (_name, query) => {
    const inline = createInlineExecutor(builtInQueryKinds);
    const expected = await run(inline, query);
    const timings = [expect.anything(), expect.anything(), expect.anything(), expect.anything()];
    expect(await run(threads, query)).toEqual({ ...expected, body: { ...expected.body, timings } });
  });

  it('fails with the class of error that the response depends on, without the view of events', async () => {
    const withoutView = { relation: 'no_view' };
    await expect(run(threads, text('select event from events'), withoutView)).rejects.toThrow(
      RelationNotFound,
    );
  });

  it('fails with the error of its statement', async () => {
    await expect(
      run(threads, text('select toInt(9223372036854775807) + number from numbers(3)')),
    ).rejects.toMatchObject({ code: 'query_failed', message: expect.stringContaining('SQLSTATE 22003') });
  });

  it('is cancelled in PostgreSQL, and its slot runs the next one', async () => {
    await expect(run(threads, slow, { timeoutMs: 300 })).rejects.toMatchObject({ code: 'query_timeout' });
    const disconnected = AbortSignal.timeout(300);
    await expect(run(threads, slow, { signal: disconnected })).rejects.toThrow('timeout');
    const { rows } = await database.pool.query<{ count: number }>(
      `select count(*) as count from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and state = 'active'
         and pid <> pg_backend_pid()`,
    );
    expect(rows).toEqual([{ count: 0 }]);
    expect((await run(threads, text('select 1'))).body).toMatchObject({ results: [[1]] });
  });
});
