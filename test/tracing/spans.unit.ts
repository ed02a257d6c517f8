import { SpanStatusCode } from '@opentelemetry/api';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  activeTraceIds,
  activeTraceParent,
  inNewTrace,
  inSpan,
  inTraceOf,
  isTraced,
} from '../../src/tracing/spans.ts';
import { recordSpans, type RecordedSpans } from './recorded_spans.ts';

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
