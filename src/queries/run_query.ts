import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/json_value.ts';
import { isReadOnly } from '../journal/database_errors.ts';
import type { SourceConnections } from '../source/source_connection.ts';
import { postgresConnection } from './query_connection.ts';
import { QueryError } from './query_errors.ts';
import type { ComputedOutput, QueryExecutor, QueryForm } from './query_executor.ts';
import type { QueryProject } from './query_kind.ts';
import { queryTransaction } from './query_source.ts';
import type { RunningQuery } from './running_queries.ts';
import { toQueryError } from './sql_errors.ts';
import { workMemOf } from './statement_resources.ts';

/** The dependencies of a query run. */
export interface QueryRunnerDependencies {
  readonly source: SourceConnections;
  readonly executor: QueryExecutor;
  readonly settings: Pick<
    Settings,
    'EXPORTD_QUERY_MAX_ROWS' | 'EXPORTD_QUERY_MAX_RESULT_SIZE' | 'EXPORTD_QUERY_WORK_MEM'
  >;
}

/** One run of a query. */
export interface QueryRun {
  readonly form: Pick<QueryForm, 'kind' | 'query'>;
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
 * @throws QueryError, the reason of the signal, or the error of an unreachable database
 */
export async function runQuery(
  { source, executor, settings }: QueryRunnerDependencies,
  { form, variables, project, now, timeoutMs }: QueryRun,
  { signal, progress }: RunningQuery,
): Promise<ComputedOutput> {
  const limits = {
    row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
    byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
  };
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new QueryTimeout()), timeoutMs);
  try {
    const ending = AbortSignal.any([signal, late.signal]);
    return await source.read(queryTransaction(timeoutMs, project.team_id), ending, ({ connection: client }) =>
      executor.run(
        { kind: form.kind, query: form.query, variables, project, now, ...limits },
        {
          connection: postgresConnection(client, (operations) => workMemOf(settings, operations)),
          progress,
          signal: ending,
        },
      ),
    );
  } catch (error) {
    if (Error.isError(error) && error.name === 'QueryTimeout')
      throw new QueryError(
        'query_timeout',
        `The query took longer than ${timeoutMs / 1_000} s (EXPORTD_QUERY_TIMEOUT; EXPORTD_QUERY_ASYNC_TIMEOUT in the background). Narrow its date range, run it in the background, or use a batch export.`,
      );
    // Not an outage, as the same error of the control database is: a statement of ours must never write.
    if (isReadOnly(error))
      throw new Error('A query was compiled to a statement that writes.', { cause: error });
    throw toQueryError(error) ?? error;
  } finally {
    clearTimeout(timer);
  }
}
