import {
  type Attributes,
  context,
  type Context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type pg from 'pg';

export { SpanKind };

/** What a span shows besides its name and its duration. Attributes hold no secrets, no parameters and no rows. */
interface SpanOptions {
  readonly kind?: SpanKind;
  readonly attributes?: Attributes;
}

/** The tracer of exportd. It records nothing until a process has started tracing (src/telemetry/tracing.ts). */
const tracer = () => trace.getTracer('exportd');

/** Whether the caller runs in a trace. False in every process that does not trace. */
export const isTraced = (): boolean => trace.getActiveSpan() !== undefined;

/** Runs `work` in a span below the active one; outside of a trace without any span. */
export function inSpan<Result>(
  name: string,
  options: SpanOptions,
  work: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  if (!isTraced()) return work(undefined);
  return runIn(context.active(), tracer().startSpan(name, options), work);
}

/**
 * Runs `work` in the first span of a new trace, with a link to the active span. For work that outlives what caused it: a
 * schedule lives for years, and the trace of each run should show that run alone.
 */
export function inNewTrace<Result>(
  name: string,
  options: SpanOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  const cause = trace.getActiveSpan()?.spanContext();
  const links = cause ? [{ context: cause }] : [];
  return runIn(ROOT_CONTEXT, tracer().startSpan(name, { ...options, links, root: true }), work);
}

/**
 * Runs `work` in a span of the trace that began elsewhere: in another process, or before the process was restarted. It is
 * below the active span if that belongs to the trace, or if there is no such trace.
 */
export function inTraceOf<Result>(
  parent: string | null,
  name: string,
  options: SpanOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  if (parent === null) return inSpan(name, options, work);
  const remote = contextOf(parent);
  const active = trace.getActiveSpan()?.spanContext().traceId;
  if (active !== undefined && active === trace.getSpanContext(remote)?.traceId)
    return inSpan(name, options, work);
  return runIn(remote, tracer().startSpan(name, options, remote), work);
}

/** The active span as the W3C header `traceparent`, to be stored with what continues its trace; null outside of a trace. */
export function activeTraceParent(): string | null {
  if (!isTraced()) return null;
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent ?? null;
}

/** The ids of the active span, for log lines; nothing outside of a trace. */
export function activeTraceIds(): { readonly trace_id: string; readonly span_id: string } | undefined {
  const active = trace.getActiveSpan()?.spanContext();
  return active && { trace_id: active.traceId, span_id: active.spanId };
}

/**
 * Begins a span that ends with `end`, for work that is not one function: a request passes through many hooks. Code runs in
 * it by `run`. A `parent` is the header `traceparent` of the caller, who may have sent anything.
 */
export function beginSpan(name: string, options: SpanOptions, parent: string | null) {
  const remote = parent === null ? ROOT_CONTEXT : contextOf(parent);
  const span = tracer().startSpan(name, options, remote);
  const active = trace.setSpan(remote, span);
  return { span, run: (work: () => void): void => context.with(active, work) };
}

/** Begins a span below the active one, for work that ends in a callback. */
const beginChildSpan = (name: string, options: SpanOptions): Span => tracer().startSpan(name, options);

/** Marks a span as failed. Messages of errors can quote rows and parameters, so only the type is recorded. */
export function failSpan(span: Span, error: unknown): void {
  const type = errorTypeOf(error);
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, message: type });
}

/** Only this header: baggage of a caller would travel on to workflow histories. */
const contextOf = (traceparent: string): Context => propagation.extract(ROOT_CONTEXT, { traceparent });

async function runIn<Result>(
  parent: Context,
  span: Span,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  try {
    return await context.with(trace.setSpan(parent, span), () => work(span));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** The code of an error, such as a SQLSTATE, or its name. */
function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/** Which database a pool leads to, as spans name it. */
type TracedDatabase = 'control' | 'source';

type Callback = (error: Error | null | undefined, result: unknown) => void;

/**
 * Gives every statement on the connections of a pool a span, if it is sent within a trace. A span has the operation and
 * the first relation of its statement, never its text: some texts contain parameters of a user's query.
 */
export function traceStatements(pool: pg.Pool, database: TracedDatabase): void {
  pool.on('connect', (client) => {
    const send = client.query.bind(client) as (...input: unknown[]) => unknown;
    const query = (...input: unknown[]): unknown => {
      const text = textOf(input[0]);
      // Other objects, such as a COPY, submit themselves.
      const span = text === undefined ? undefined : beginStatementSpan(text, database);
      if (!span) return send(...input);
      const callback = input.at(-1);
      if (typeof callback !== 'function') return endAfter(span, send(...input) as Promise<unknown>);
      const ending: Callback = (error, result) => {
        endSpan(span, error);
        (callback as Callback)(error, result);
      };
      return send(...input.slice(0, -1), ending);
    };
    client.query = query as typeof client.query;
  });
}

/** Begins the span of a statement; undefined outside of a trace. The caller ends it. */
export function beginStatementSpan(text: string, database: TracedDatabase): Span | undefined {
  if (!isTraced()) return undefined;
  const summary = summarizeStatement(text);
  return beginChildSpan(summary, {
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.summary': summary,
      'db.namespace': database,
    },
  });
}

/** Does work in the span of a statement, if within a trace: for a statement that another thread sends, which is not traced. */
export function inStatementSpan<Result>(
  text: string,
  database: TracedDatabase,
  work: () => Promise<Result>,
): Promise<Result> {
  const span = beginStatementSpan(text, database);
  return span ? endAfter(span, work()) : work();
}

/** A relation's name, perhaps with its schema. */
const name = '((?:"\\w+"|[a-z_]\\w*)(?:\\.(?:"\\w+"|[a-z_]\\w*))?)';
/** The first relation. After FROM a name before a parenthesis is a function, as in `extract(epoch from now())`. */
const namedRelation = new RegExp(
  `\\b(?:(?:into|update)\\s+(?:only\\s+)?${name}|from\\s+(?:only\\s+)?${name}(?![\\w."]|\\s*\\())`,
  'i',
);

/** Longer beginnings of a statement tell no more about it. */
const maxSummarizedLength = 4_000;

/** The operation and the first relation of a statement, such as `select exportd.commands`. */
export function summarizeStatement(text: string): string {
  // Without literals, whose text could look like a relation. A cut one ends with the text.
  const statement = text.slice(0, maxSummarizedLength).replace(/'(?:[^']|'')*(?:'|$)/g, '?');
  const [operation = 'statement'] = /[a-z]+/i.exec(statement) ?? [];
  const [, target, relation = target] = namedRelation.exec(statement) ?? [];
  return [operation.toLowerCase(), ...(relation === undefined ? [] : [relation.replaceAll('"', '')])].join(
    ' ',
  );
}

function textOf(query: unknown): string | undefined {
  if (typeof query === 'string') return query;
  if (typeof query !== 'object' || query === null || 'submit' in query) return undefined;
  return 'text' in query && typeof query.text === 'string' ? query.text : undefined;
}

async function endAfter<Result>(span: Span, result: Promise<Result>): Promise<Result> {
  try {
    const done = await result;
    endSpan(span, null);
    return done;
  } catch (error) {
    endSpan(span, error);
    throw error;
  }
}

function endSpan(span: Span, error: unknown): void {
  if (error !== null && error !== undefined) failSpan(span, error);
  span.end();
}
