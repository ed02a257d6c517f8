import type { FastifyInstance, FastifyRequest } from 'fastify';
import { beginSpan, failSpan, SpanKind } from '../../tracing/spans.ts';

/**
 * Gives every request to the API a span, in the trace of the caller if it sent one. It shows method, route and status, and
 * neither the URL nor anything of headers and body. Call it before other hooks are added.
 */
export function addRequestSpans(app: FastifyInstance): void {
  const begun = new WeakMap<FastifyRequest, ReturnType<typeof beginSpan>>();
  const errors = new WeakMap<FastifyRequest, Error>();

  app.addHook('onRequest', (request, _reply, done) => {
    const { url: route } = request.routeOptions;
    if (!route?.startsWith('/api/')) {
      done();
      return;
    }
    const attributes = { 'http.request.method': request.method, 'http.route': route };
    const { traceparent } = request.headers;
    const parent = typeof traceparent === 'string' ? traceparent : null;
    const current = beginSpan(`${request.method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);
    begun.set(request, current);
    current.run(done);
  });

  // The body is parsed in callbacks of the connection, outside of the span.
  app.addHook('preValidation', (request, _reply, done) => {
    const current = begun.get(request);
    if (current) current.run(done);
    else done();
  });

  app.addHook('onError', (request, _reply, error, done) => {
    errors.set(request, error);
    done();
  });

  app.addHook('onResponse', (request, reply, done) => {
    const span = begun.get(request)?.span;
    if (span) {
      span.setAttribute('http.response.status_code', reply.statusCode);
      // An error of the caller is a response like any other.
      if (reply.statusCode >= 500) failSpan(span, errors.get(request));
      span.end();
    }
    done();
  });
}
