import { defaultNextRefreshMs } from './freshness.ts';
import type { ComputedOutput, RunEnvironment, RunTask } from './query_executor.ts';
import type { OutputResults, QueryOutput } from './query_kind.ts';
import type { QueryKinds } from './registry.ts';
import { resultTooLarge } from './result_too_large.ts';

/** Runs a query and writes its output as JSON. @throws QueryError, the errors of the connection */
export async function computeOutput(
  kinds: QueryKinds,
  task: RunTask,
  { connection, progress }: Pick<RunEnvironment, 'connection' | 'progress'>,
): Promise<ComputedOutput> {
  const { kind, query, variables, project, now, row_limit, byte_limit } = task;
  const parsed = kinds.parse({ ...query, kind });
  const context = { connection, project, now, row_limit, byte_limit, variables, progress };
  const output = fieldsOf(await parsed.run(context), row_limit, project.timezone);
  const { next_refresh_ms = defaultNextRefreshMs } = parsed.freshness(project, now);
  const json = new TextEncoder().encode(stringify(output, byte_limit));
  if (json.byteLength > byte_limit) throw resultTooLarge(byte_limit);
  return { json, next_refresh_ms };
}

/** @throws QueryError if the JSON is longer than a string can be */
function stringify(output: object, byteLimit: number): string {
  try {
    return JSON.stringify(output);
  } catch (error) {
    throw error instanceof RangeError ? resultTooLarge(byteLimit) : error;
  }
}

const isRows = (results: OutputResults): results is readonly unknown[] => Array.isArray(results);

/** The fields of a response that depend on the query alone. */
function fieldsOf(output: QueryOutput, rowLimit: number, timezone: string): Record<string, unknown> {
  const { results, columns, types, hasMore = false, limit, offset, dialect_query, more = {} } = output;
  const rows = isRows(results) ? results : [];
  const isCut = rows.length > rowLimit;
  const isFull = isCut || (hasMore && rows.length === rowLimit);
  return {
    ...more,
    results: isCut ? rows.slice(0, rowLimit) : results,
    columns: columns ?? null,
    types: types ?? null,
    hasMore: hasMore || isCut,
    limit: limit ?? null,
    offset: offset ?? null,
    dialect_query: dialect_query ?? null,
    // How to get the remaining rows.
    notice: isFull
      ? `The result is limited to ${rowLimit} rows, and there are more. Use a batch export to get them all.`
      : null,
    timezone,
  };
}
