import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/json_value.ts';
import { isReadOnly } from '../journal/database_errors.ts';
import type { SourceConnections } from '../source/source_connection.ts';
import { defaultNextRefreshMs } from './freshness.ts';
import { QueryError } from './query_errors.ts';
import type { OutputResults, QueryOutput, QueryProject } from './query_kind.ts';
import { queryTransaction } from './query_source.ts';
import { resultTooLarge } from './read_rows.ts';
import type { ParsedQuery } from './registry.ts';
import type { StoredOutput } from './results.ts';
import type { RunningQuery } from './running_queries.ts';
import { toQueryError } from './sql_errors.ts';

/** The dependencies of a query run. */
export interface QueryRunnerDependencies {
  readonly source: SourceConnections;
  readonly settings: Pick<Settings, 'EXPORTD_QUERY_MAX_ROWS' | 'EXPORTD_QUERY_MAX_RESULT_SIZE'>;
}

/** One run of a query. */
export interface QueryRun {
  readonly parsed: ParsedQuery;
  readonly variables: Readonly<Record<string, JsonValue>>;
  readonly project: QueryProject;
  readonly now: Date;
  readonly timeoutMs: number;
}

/** A query exceeded its timeout. */
class QueryTimeout extends Error {
  override readonly name = 'QueryTimeout';
}

/**
 * Runs a query in one READ ONLY transaction within its limits on time, rows and bytes.
 * @returns the output, and its JSON for storage.
 * @throws QueryError, the reason of the signal, or the error of an unreachable database
 */
export async function runQuery(
  { source, settings }: QueryRunnerDependencies,
  { parsed, variables, project, now, timeoutMs }: QueryRun,
  { signal, progress }: RunningQuery,
): Promise<{ readonly output: StoredOutput; readonly json: string }> {
  const rowLimit = settings.EXPORTD_QUERY_MAX_ROWS;
  const byteLimit = settings.EXPORTD_QUERY_MAX_RESULT_SIZE;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new QueryTimeout()), timeoutMs);
  try {
    const result = await source.read(
      queryTransaction(timeoutMs),
      AbortSignal.any([signal, late.signal]),
      ({ connection }) =>
        parsed.run({
          connection,
          project,
          now,
          row_limit: rowLimit,
          byte_limit: byteLimit,
          variables,
          progress,
        }),
    );
    const { next_refresh_ms = defaultNextRefreshMs } = parsed.freshness(project, now);
    const output = toStoredOutput(result, { rowLimit, timezone: project.timezone, next_refresh_ms });
    const json = JSON.stringify(output);
    if (Buffer.byteLength(json) > byteLimit) throw resultTooLarge(byteLimit);
    return { output, json };
  } catch (error) {
    if (Error.isError(error) && error.name === 'QueryTimeout')
      throw new QueryError(
        'query_timeout',
        `The query took longer than ${timeoutMs / 1_000} s. Narrow its date range, run it in the background, or use a batch export.`,
      );
    // Not an outage, as the same error of the control database is: a statement of ours must never write.
    if (isReadOnly(error))
      throw new Error('A query was compiled to a statement that writes.', { cause: error });
    throw toQueryError(error) ?? error;
  } finally {
    clearTimeout(timer);
  }
}

const isRows = (results: OutputResults): results is readonly unknown[] => Array.isArray(results);

function toStoredOutput(
  { results, columns, types, hasMore = false, limit, offset, dialect_query, more = {} }: QueryOutput,
  { rowLimit, ...metadata }: { rowLimit: number; timezone: string; next_refresh_ms: number },
): StoredOutput {
  const rows = isRows(results) ? results : [];
  const isCut = rows.length > rowLimit;
  const isFull = isCut || (hasMore && rows.length === rowLimit);
  return {
    results: isCut ? rows.slice(0, rowLimit) : results,
    columns: columns ?? null,
    types: types ?? null,
    hasMore: hasMore || isCut,
    limit: limit ?? null,
    offset: offset ?? null,
    dialect_query: dialect_query ?? null,
    notice: isFull
      ? `The result is limited to ${rowLimit} rows, and there are more. Use a batch export to get them all.`
      : null,
    more,
    ...metadata,
  };
}
