import { EventEmitter } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { SpanStatusCode } from '@opentelemetry/api';
import pg from 'pg';
import {
  activeTraceIds,
  activeTraceParent,
  inNewTrace,
  inSpan,
  inTraceOf,
  isTraced,
  summarizeStatement,
  traceStatements,
} from '../../src/tracing/spans.ts';
import { type RecordedSpans, recordSpans } from './recorded_spans.ts';

describe('tracing', () => {
  const nothing = () => Promise.resolve();

  describe('spans of a process that traces', () => {
    let recorded: RecordedSpans;
    beforeAll(() => {
      recorded = recordSpans();
    });
    afterEach(() => recorded.reset());
    afterAll(() => recorded.stop());

    it('are added within a trace only', async () => {
      expect(await inSpan('alone', {}, () => Promise.resolve(7))).toBe(7);
      expect(recorded.spans()).toEqual([]);
      await inNewTrace('outer', {}, () => inSpan('inner', { attributes: { one: 1 } }, nothing));
      const [outer, inner] = [recorded.spanOf('outer'), recorded.spanOf('inner')];
      expect(outer.parentSpanId).toBeUndefined();
      expect(inner.parentSpanId).toBe(outer.spanContext().spanId);
      expect(inner.attributes).toEqual({ one: 1 });
    });

    it('begin a new trace with a link to what caused it', async () => {
      await inNewTrace('schedule', {}, () => inNewTrace('run', {}, nothing));
      const [schedule, run] = [recorded.spanOf('schedule'), recorded.spanOf('run')];
      expect(run.spanContext().traceId).not.toBe(schedule.spanContext().traceId);
      expect(run.links.map(({ context }) => context.spanId)).toEqual([schedule.spanContext().spanId]);
    });

    it('continue a stored trace, whatever the current one is', async () => {
      let stored: string | null = null;
      await inNewTrace('request', {}, () => {
        stored = activeTraceParent();
        return nothing();
      });
      expect(stored).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      await inNewTrace('step', {}, () => inTraceOf(stored, 'apply', {}, nothing));
      const [request, apply] = [recorded.spanOf('request'), recorded.spanOf('apply')];
      expect(apply.spanContext().traceId).toBe(request.spanContext().traceId);
      expect(apply.parentSpanId).toBe(request.spanContext().spanId);
    });

    it('are below the active span if that belongs to the stored trace', async () => {
      let stored: string | null = null;
      await inNewTrace('request', {}, () => {
        stored = activeTraceParent();
        return inNewTrace('other', {}, () =>
          inTraceOf(stored, 'step', {}, () => inTraceOf(stored, 'apply', {}, nothing)),
        );
      });
      const [request, step, apply] = ['request', 'step', 'apply'].map((name) => recorded.spanOf(name));
      expect(step?.parentSpanId).toBe(request?.spanContext().spanId);
      expect(apply?.parentSpanId).toBe(step?.spanContext().spanId);
    });

    it('show the type of an error and not its message', async () => {
      const error = Object.assign(new Error('duplicate key (email)=(ada@example.com)'), { code: '23505' });
      await expect(inNewTrace('failing', {}, () => Promise.reject(error))).rejects.toThrow('duplicate key');
      const { status, attributes, events } = recorded.spanOf('failing');
      expect(status).toEqual({ code: SpanStatusCode.ERROR, message: '23505' });
      expect(attributes).toEqual({ 'error.type': '23505' });
      expect(events).toEqual([]);
    });

    it('give log lines their ids', async () => {
      expect(activeTraceIds()).toBeUndefined();
      await inNewTrace('logged', {}, () => {
        expect(activeTraceIds()).toEqual({
          trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
          span_id: expect.stringMatching(/^[0-9a-f]{16}$/),
        });
        return nothing();
      });
    });
  });

  describe('spans of a process that does not trace', () => {
    it('cost nothing and change nothing', async () => {
      const traced = () => Promise.resolve([isTraced(), activeTraceParent(), activeTraceIds()]);
      expect(await inNewTrace('run', {}, traced)).toEqual([false, null, undefined]);
      const stored = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      expect(await inTraceOf(stored, 'apply', {}, traced)).toEqual([false, null, undefined]);
    });
  });
});

describe('tracing SQL', () => {
  describe('the summary of a statement', () => {
    it.each([
      ['select id from exportd.commands where id = $1', 'select exportd.commands'],
      [
        '\n  WITH inserted AS (INSERT INTO exportd.commands (id) VALUES ($1)) SELECT 1',
        'with exportd.commands',
      ],
      ['update only "public"."events" set event = $1', 'update public.events'],
      ["begin; set local timezone = 'UTC'", 'begin'],
      ['copy (select uuid from public.events) to stdout (format binary)', 'copy public.events'],
      ['select set_config($1, $2, true)', 'select'],
      ['select extract(epoch from now())', 'select'],
      [
        'select * from unnest($1::uuid[]) join exportd.runs on true where id in (select id from exportd.x)',
        'select exportd.x',
      ],
      ["set local app.filter = 'a value from secrets'", 'set'],
      [`select ${"'from secrets'".repeat(400)} from events`, 'select'],
      ["select 'it''s from secrets' from events", 'select events'],
      ['', 'statement'],
    ])('of %j is %j', (text, summary) => {
      expect(summarizeStatement(text)).toBe(summary);
    });
  });

  /** A connection that fails for the text `fail`, and remembers what it was sent. */
  function createFakePool() {
    const pool = new EventEmitter();
    const sent: unknown[] = [];
    const error = Object.assign(new Error('row (secret)'), { code: '42P01' });
    const client = {
      query: (query: unknown, ...rest: unknown[]): unknown => {
        sent.push(query);
        const fails = query === 'fail';
        const callback = rest.at(-1);
        if (typeof callback === 'function') {
          (callback as (...results: unknown[]) => void)(fails ? error : null, 'rows');
          return undefined;
        }
        if (typeof query === 'object') return query;
        return fails ? Promise.reject(error) : Promise.resolve('rows');
      },
    };
    traceStatements(pool as unknown as pg.Pool, 'control');
    pool.emit('connect', client);
    return { client, sent };
  }

  describe('statements of a traced pool', () => {
    let recorded: RecordedSpans;
    beforeAll(() => {
      recorded = recordSpans();
    });
    afterEach(() => recorded.reset());
    afterAll(() => recorded.stop());

    it('have a span without text, parameters and messages', async () => {
      const { client } = createFakePool();
      await inNewTrace('run', {}, async () => {
        expect(await client.query("select * from exportd.runs where name = 'Ada'", ['Grace'])).toBe('rows');
        await expect(client.query('fail')).rejects.toThrow('row (secret)');
      });
      expect(recorded.spanOf('select exportd.runs').attributes).toEqual({
        'db.system.name': 'postgresql',
        'db.namespace': 'control',
        'db.query.summary': 'select exportd.runs',
      });
      expect(recorded.spanOf('fail').attributes['error.type']).toBe('42P01');
      const everything = JSON.stringify(
        recorded.spans().map(({ name, attributes, status, events }) => [name, attributes, status, events]),
      );
      for (const secret of ['Ada', 'Grace', 'secret']) expect(everything).not.toContain(secret);
    });

    it('have one too when their result goes to a callback, as those of the pool itself', async () => {
      const { client } = createFakePool();
      const results: unknown[] = [];
      await inNewTrace('run', {}, () => {
        client.query('select 1', [], (...result: unknown[]) => results.push(result));
        client.query('fail', (...result: unknown[]) => results.push(result));
        return Promise.resolve();
      });
      expect(results).toEqual([
        [null, 'rows'],
        [expect.any(Error), 'rows'],
      ]);
      expect(recorded.spans().map(({ name }) => name)).toEqual(['select', 'fail', 'run']);
    });

    it('have none outside of a trace, and none if they are objects that submit themselves', async () => {
      const { client, sent } = createFakePool();
      const copy = { submit: () => undefined };
      await client.query('select 1');
      await inNewTrace('run', {}, () => {
        expect(client.query(copy)).toBe(copy);
        return Promise.resolve();
      });
      expect(sent).toEqual(['select 1', copy]);
      expect(recorded.spans().map(({ name }) => name)).toEqual(['run']);
    });
  });
});
