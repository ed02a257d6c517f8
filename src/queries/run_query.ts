import type { Settings } from '../config/settings.ts';
import type { JsonValue } from '../domain/event.ts';
import { isReadOnly, type Pool } from '../journal/database.ts';
import { isErrorOfSource, type SourceConnections } from '../source/source_connection.ts';
import { withNumberPosition } from './dialect_query/number_position.ts';
import { QueryError, toQueryError } from './query_errors.ts';
import type { ComputedOutput, QueryExecutor, QueryForm } from './query_executor.ts';
import type { QueryProject } from './query_kind.ts';
import { readWarehouse, type WarehouseSettings } from './query_source.ts';
import type { RunningQuery } from './running_queries.ts';
import { inferTypes } from './sample_properties.ts';

/** The dependencies of a query run. */
export interface QueryRunnerDependencies {
  readonly pool: Pool;
  readonly source: SourceConnections;
  readonly executor: QueryExecutor;
  readonly settings: WarehouseSettings &
    Pick<Settings, 'EXPORTD_QUERY_MAX_ROWS' | 'EXPORTD_QUERY_MAX_RESULT_SIZE'>;
}

/** One run of a query. */
interface QueryRun {
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
  { pool, source, executor, settings }: QueryRunnerDependencies,
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
    return await readWarehouse(source, settings, { project, timeoutMs, signal: ending }, (warehouse) => {
      const context = { warehouse, variables, project, now, progress, ...limits };
      return executor.run(
        { kind: form.kind, query: form.query, variables, project, now, ...limits },
        {
          warehouse,
          inferTypes: (properties) => inferTypes(pool, context, properties),
          progress,
          signal: ending,
        },
      );
    });
  } catch (error) {
    if (error instanceof Error && error.name === 'QueryTimeout')
      throw new QueryError(
        'query_timeout',
        `The query took longer than ${timeoutMs / 1_000} s (EXPORTD_QUERY_TIMEOUT; EXPORTD_QUERY_ASYNC_TIMEOUT in the background). Narrow its date range, run it in the background, or use a batch export.`,
      );
    if (!isErrorOfSource(error)) throw error;
    // Not an outage, as the same error of the control database is: a statement of ours must never write.
    if (isReadOnly(error))
      throw new Error('A query was compiled to a statement that writes.', { cause: error });
    const failed = toQueryError(error);
    if (failed === undefined) throw error;
    throw form.kind === 'DialectQuery' ? withNumberPosition(failed, String(form.query.query)) : failed;
  } finally {
    clearTimeout(timer);
  }
}
