import fastify from 'fastify';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { CommandRejected } from '../../src/domain/errors.ts';
import { createErrorHandler } from '../../src/http/plugins/errors.ts';
import { addRequestSpans } from '../../src/http/plugins/spans.ts';
import { activeTraceIds, inSpan } from '../../src/tracing/spans.ts';
import { recordSpans, type RecordedSpans } from '../tracing/recorded_spans.ts';

describe('the span of a request', () => {
  let recorded: RecordedSpans;
  const app = fastify();
  beforeAll(async () => {
    recorded = recordSpans();
    addRequestSpans(app);
    app.setErrorHandler(createErrorHandler([]));
    app.post('/api/exports/:id', async () => {
      await inSpan('command', {}, () => Promise.resolve());
      return activeTraceIds();
    });
    app.get('/api/refused', () => {
      throw new CommandRejected('not_found', 'Not found.');
    });
    app.get('/api/broken', () => {
      throw new Error('value of a row');
    });
    app.get('/healthz', () => 'ok');
    await app.ready();
  });
  afterEach(() => recorded.reset());
  afterAll(async () => {
    recorded.stop();
    await app.close();
  });

  it('surrounds what the request does, also after its body was parsed', async () => {
    const response = await app.inject({ method: 'POST', url: '/api/exports/7?secret=1', payload: { a: 1 } });
    const span = recorded.spanOf('POST /api/exports/:id');
    expect(response.json()).toEqual({
      trace_id: span.spanContext().traceId,
      span_id: span.spanContext().spanId,
    });
    expect(span.kind).toBe(SpanKind.SERVER);
    expect(span.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/api/exports/:id',
      'http.response.status_code': 200,
    });
    expect(recorded.spanOf('command').parentSpanId).toBe(span.spanContext().spanId);
  });

  it('belongs to the trace of the caller, without its baggage', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, baggage: 'user=ada' };
    await app.inject({ method: 'POST', url: '/api/exports/7', headers });
    const span = recorded.spanOf('POST /api/exports/:id');
    expect([span.spanContext().traceId, span.parentSpanId]).toEqual([traceId, 'b7ad6b7169203331']);
    await app.inject({ method: 'POST', url: '/api/exports/7', headers: { traceparent: 'nonsense' } });
    expect(recorded.spans().at(-1)?.parentSpanId).toBeUndefined();
  });

  it('fails with errors of the server only', async () => {
    await app.inject('/api/refused');
    await app.inject('/api/broken');
    expect(recorded.spanOf('GET /api/refused').status.code).toBe(SpanStatusCode.UNSET);
    const broken = recorded.spanOf('GET /api/broken');
    expect(broken.status).toEqual({ code: SpanStatusCode.ERROR, message: 'Error' });
    expect(JSON.stringify(broken.attributes)).not.toContain('value of a row');
  });

  it('is left out for health checks and unknown paths', async () => {
    for (const path of ['/healthz', '/api/nothing']) await app.inject(path);
    expect(recorded.spans()).toEqual([]);
  });
});
