import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { builtInQueryKinds } from '../../../src/queries/built_in_kinds.ts';
import { createInlineExecutor } from '../inline_executor.ts';
import type { QueryExecutor } from '../../../src/queries/query_executor.ts';
import { QuerySchemaError } from '../../../src/queries/parse_query.ts';
import { createThreadExecutor } from '../../../src/queries/threads/thread_executor.ts';
import { schema } from '../../../src/dialect/test/project.ts';
import { casesOf } from '../../setup/effort.ts';
import { environment, executorSettings, parseTask, runTask } from './fake_environment.ts';

const opened: QueryExecutor[] = [];
afterEach(async () => {
  for (const executor of opened.splice(0)) await executor.close();
});

function open(program?: string, settings: object = {}): QueryExecutor {
  const url = program === undefined ? undefined : new URL(program, import.meta.url);
  const executor = createThreadExecutor({ ...executorSettings, ...settings }, url);
  opened.push(executor);
  return executor;
}

/** Threads of the product, which many tests share: a start is slow. */
const shared = createThreadExecutor(executorSettings);
afterAll(() => shared.close());

const never = new AbortController().signal;
const none = environment(never, () => Promise.reject(new Error('No statement is expected.')));
const one = environment(never, (_statement, { receive }) => {
  receive([['1']], 1);
  return Promise.resolve([{ name: 'c1', type_id: 23 }]);
});
const text = (json: Uint8Array) => JSON.parse(new TextDecoder().decode(json)) as Record<string, unknown>;

describe('a thread', () => {
  it('that computes without an end ends with the signal of its query', async () => {
    const executor = open('endless_thread.ts');
    const stop = new AbortController();
    const ran = executor.run(runTask('select 1'), { ...none, signal: stop.signal });
    stop.abort(new Error('Timed out.'));
    await expect(ran).rejects.toThrow('Timed out.');
    // Its slot is free again: the next one starts, and ends like it.
    const next = executor.run(runTask('select 1'), { ...none, signal: AbortSignal.timeout(1) });
    await expect(next).rejects.toThrow('timeout');
  });

  it('that needs too much memory fails its query, not the process', async () => {
    const program = join(import.meta.dirname, 'greedy_query.ts');
    // Without the options of V8 that tests have, which leave a thread less room to end.
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    expect(JSON.parse(stdout)).toMatchObject({
      code: 'result_too_large',
      message: expect.stringContaining('more than 64 MiB'),
    });
  });

  it.each(casesOf(['{"a":[{}]}'], ['{}', '{"a":[{}]}', '[[[[]]]]']))(
    'that parses JSON of many %s with a long number fails its query at most, not the process',
    async (value) => {
      const program = join(import.meta.dirname, 'costly_query.ts');
      const { stdout } = await promisify(execFile)(process.execPath, [program, value]);
      expect(['completed', 'result_too_large']).toContain(stdout);
    },
  );

  it('that parses long queries takes those of projects in turn', async () => {
    const executor = shared;
    const parsed: number[] = [];
    const parse = async (team_id: number) => {
      const task = parseTask({ kind: 'DialectQuery', query: `select '${'x'.repeat(10_000)}'` });
      await executor.parse({ ...task, project: { ...task.project, team_id } });
      parsed.push(team_id);
    };
    await Promise.all([parse(1), parse(1), parse(1), parse(2)]);
    expect(parsed).toEqual([1, 2, 1, 1]);
  });

  it('that does not start fails its query', async () => {
    await expect(open('no_such_thread.ts').run(runTask('select 1'), none)).rejects.toThrow('has ended');
  });

  it('computes what the process would', async () => {
    const task = runTask('select event from events');
    const inline = createInlineExecutor(builtInQueryKinds);
    const [computed, expected] = [await shared.run(task, one), await inline.run(task, one)];
    expect(text(computed.json)).toEqual({ ...text(expected.json), timings: expect.any(Array) });
    expect(text(computed.json)).toMatchObject({ results: [['1']], columns: ['event'] });
    expect(computed.next_refresh_ms).toBe(expected.next_refresh_ms);
  });

  it('fails with the error of its statement, and runs the next query', async () => {
    const executor = shared;
    class Unreachable extends Error {}
    const failing = environment(never, () => Promise.reject(new Unreachable('No server.')));
    await expect(executor.run(runTask('select 1'), failing)).rejects.toThrow(Unreachable);
    await expect(executor.run(runTask('select\n  nothing'), one)).rejects.toMatchObject({
      name: 'QueryError',
      code: 'dialect_error',
      position: { line: 2, column: 3, offset: 9, length: 7 },
    });
    expect(text((await executor.run(runTask('select 1'), one)).json)).toMatchObject({ results: [[1]] });
  });

  it('that waits for a slot ends with its signal, and lets the next one run', async () => {
    const executor = open('endless_thread.ts');
    const [first, second] = [new AbortController(), new AbortController()];
    const busy = executor.run(runTask('select 1'), { ...none, signal: first.signal });
    const waiting = executor.run(runTask('select 1'), { ...none, signal: second.signal });
    second.abort(new Error('Cancelled.'));
    await expect(waiting).rejects.toThrow('Cancelled.');
    first.abort(new Error('Timed out.'));
    await expect(busy).rejects.toThrow('Timed out.');
  });
});

describe('a query that is parsed in a thread', () => {
  const padding = ' '.repeat(10_000);

  it('is the same as one that is parsed in the process', async () => {
    const task = parseTask({ kind: 'DialectQuery', query: `select {variables.country}${padding}` });
    const inline = createInlineExecutor(builtInQueryKinds);
    const parsed = await shared.parse(task);
    expect(parsed).toEqual(await inline.parse(task));
    expect(parsed.variables).toEqual([{ code_name: 'country', id: null }]);
  });

  it('fails with the same errors', async () => {
    const executor = shared;
    const wrong = executor.parse(parseTask({ kind: 'DialectQuery', query: padding, limit: 'x' }));
    const error: unknown = await wrong.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(QuerySchemaError);
    expect(error).toMatchObject({
      path: ['query'],
      error: { issues: [{ code: 'unrecognized_keys', keys: ['limit'], path: [] }] },
    });
    await expect(executor.parse(parseTask({ kind: 'Nothing', query: padding }))).rejects.toMatchObject({
      code: 'invalid_input',
      attr: 'query__kind',
    });
  });

  it('does not wait for queries that run', async () => {
    const executor = shared;
    const stop = new AbortController();
    const running = executor.run(
      runTask('select 1'),
      environment(
        stop.signal,
        () =>
          new Promise((_, reject) =>
            stop.signal.addEventListener('abort', () => reject(new Error('Cancelled.'))),
          ),
      ),
    );
    const query = `select 1${padding}`;
    expect((await executor.parse(parseTask({ kind: 'DialectQuery', query }))).query).toMatchObject({ query });
    stop.abort(new Error('Cancelled.'));
    await expect(running).rejects.toThrow('Cancelled.');
  });
});

it('a query is checked in a thread', async () => {
  const { project: ofQuery, now } = parseTask({});
  const check = (query: string, infersTypes = true) =>
    shared.check({ query, infersTypes, project: ofQuery, now, schema });
  await expect(check('select event from events')).resolves.toBeUndefined();
  await expect(check('select nothing from events')).rejects.toMatchObject({ code: 'dialect_error' });
  await expect(check('select avg(properties.price) from events')).resolves.toBeUndefined();
  const drafted = check('select avg(properties.price) from events', false);
  await expect(drafted).rejects.toMatchObject({ code: 'dialect_error' });
});

it('a closed executor runs nothing', async () => {
  const executor = open();
  await executor.close();
  await expect(executor.run(runTask('select 1'), none)).rejects.toThrow('have been closed');
});
