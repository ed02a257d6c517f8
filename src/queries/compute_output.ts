import { stringifyJson } from '../client/exact_numbers.ts';
import { costOf } from './explain.ts';
import { noticeOfTypes, type QueryInference, withInferredTypes } from './inferred_types.ts';
import { findNameNotice, type NameCache } from './name_notice.ts';
import type { QueryKinds } from './parse_query.ts';
import { resultTooLarge } from './query_errors.ts';
import type { ComputedOutput, RunEnvironment, RunTask } from './query_executor.ts';
import type { OutputResults, QueryOutput } from './query_kind.ts';
import type { QueryStatement, Substitute, Warehouse, WarehouseSchema } from './warehouse.ts';

/** How long clients should wait before they request a refresh, unless the kind sets it. */
const defaultNextRefreshMs = 60_000;

/** A query that took longer may be near its timeout: its names are not searched. Milliseconds. */
const maxMsBeforeNames = 5_000;

/**
 * Runs a query and writes its output as JSON.
 * @param names what the thread remembers of names
 * @throws QueryError, the errors of the warehouse
 */
export async function computeOutput(
  kinds: QueryKinds,
  task: RunTask,
  { warehouse, inferTypes, progress }: Omit<RunEnvironment, 'signal'>,
  names: NameCache,
): Promise<ComputedOutput> {
  const { kind, query, variables, project, now, row_limit, byte_limit } = task;
  const parsed = kinds.parse({ ...query, kind });
  const context = { warehouse, project, now, row_limit, byte_limit, variables, progress };
  const startedAt = performance.now();
  const { result, types } = await withInferredTypes(inferTypes, async (inference) => {
    const clock = timedWarehouse(warehouse, inference, startedAt);
    return { clock, ran: await parsed.run({ ...context, warehouse: clock.warehouse }) };
  });
  const { clock, ran } = result;
  const timings = clock.timings();
  const explain = parsed.explains ? await costOf(context, clock.statements) : null;
  const ofNames =
    performance.now() - startedAt > maxMsBeforeNames
      ? null
      : await findNameNotice(parsed.query, context, names).catch(() => null);
  const notices = [noticeOf(clock), noticeOfTypes(types), ofNames];
  const output = {
    ...fieldsOf(ran, row_limit, project.timezone, sentences(notices)),
    timings,
    ...(explain !== null && { explain }),
  };
  const { next_refresh_ms = defaultNextRefreshMs } = parsed.freshness(project, now);
  const json = new TextEncoder().encode(stringify(output, byte_limit));
  if (json.byteLength > byte_limit) throw resultTooLarge(byte_limit);
  return { json, next_refresh_ms };
}

/** A part of the time that a query took: its name and seconds. */
interface Timing {
  readonly k: 'schema' | 'statements' | 'computation' | 'total';
  readonly t: number;
}

/** What a query has asked of its warehouse. */
interface Asked {
  readonly statements: readonly QueryStatement[];
  /** Those of the schemas that it read. */
  readonly substitutes: readonly Substitute[];
}

/** What a result says of columns that the source lacks; null if no statement depends on one. */
function noticeOf({ statements, substitutes }: Asked): string | null {
  const found = substitutes.find(({ sql, column }) =>
    statements.some(({ text }) => text.includes(sql) && text.replaceAll(sql, '').includes(`"${column}"`)),
  );
  return found?.notice ?? null;
}

/** A warehouse with inferred types whose waits are measured: for its schema, and for the rows of `statements`. */
function timedWarehouse(
  warehouse: Warehouse,
  inference: QueryInference,
  startedAt: number,
): Asked & { readonly warehouse: Warehouse; readonly timings: () => readonly Timing[] } {
  const statements: QueryStatement[] = [];
  const substitutes: Substitute[] = [];
  const waited = { schema: 0, statements: 0 };
  const timed = async <Result>(k: keyof typeof waited, work: Promise<Result>): Promise<Result> => {
    const from = performance.now();
    try {
      return await work;
    } finally {
      waited[k] += performance.now() - from;
    }
  };
  return {
    warehouse: {
      schema: async () => {
        const schema = await timed<WarehouseSchema>('schema', warehouse.schema());
        if (schema.substitute !== null) substitutes.push(schema.substitute);
        return { ...schema, inference };
      },
      readRows: (statement, receiver) => {
        statements.push(statement);
        return timed('statements', warehouse.readRows(statement, receiver));
      },
    },
    substitutes,
    statements,
    timings: () => {
      const total = performance.now() - startedAt;
      const seconds = (ms: number): number => Math.round(Math.max(ms, 0)) / 1_000;
      return [
        { k: 'schema', t: seconds(waited.schema) },
        { k: 'statements', t: seconds(waited.statements) },
        { k: 'computation', t: seconds(total - waited.schema - waited.statements) },
        { k: 'total', t: seconds(total) },
      ];
    },
  };
}

/** @throws QueryError if the JSON is longer than a string can be */
function stringify(output: object, byteLimit: number): string {
  try {
    return stringifyJson(output);
  } catch (error) {
    throw error instanceof RangeError ? resultTooLarge(byteLimit) : error;
  }
}

const isRows = (results: OutputResults): results is readonly unknown[] => Array.isArray(results);

/** The sentences that are not null; null without one. */
const sentences = (all: readonly (string | null)[]): string | null => {
  const present = all.filter((sentence) => sentence !== null);
  return present.length === 0 ? null : present.join(' ');
};

/** The fields of a response that depend on the query alone. */
function fieldsOf(
  output: QueryOutput,
  rowLimit: number,
  timezone: string,
  ofColumns: string | null,
): Record<string, unknown> {
  const { results, columns, types, hasMore = false, limit, offset, dialect_query, more = {} } = output;
  const { notice = null } = output;
  const rows = isRows(results) ? results : [];
  const isCut = rows.length > rowLimit;
  const remaining =
    isCut || (hasMore && rows.length === rowLimit)
      ? `The result is limited to ${rowLimit} rows, and there are more. Use a batch export to get them all.`
      : null;
  return {
    ...more,
    results: isCut ? rows.slice(0, rowLimit) : results,
    columns: columns ?? null,
    types: types ?? null,
    hasMore: hasMore || isCut,
    limit: limit ?? null,
    offset: offset ?? null,
    dialect_query: dialect_query ?? null,
    notice: sentences([ofColumns, notice, remaining]),
    timezone,
  };
}
