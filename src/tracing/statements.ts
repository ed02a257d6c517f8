import { SpanKind, type Span } from '@opentelemetry/api';
import type pg from 'pg';
import { beginChildSpan, failSpan, isTraced } from './spans.ts';

/** Which database a pool leads to, as spans name it. */
export type TracedDatabase = 'control' | 'source';

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
