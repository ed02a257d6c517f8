import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { SourceBusy, type SourceConnections } from '../../source/source_connection.ts';
import { postgresConnection, type QueryConnection } from '../query_connection.ts';
import { QueryNotStarted } from '../query_errors.ts';
import type { QueryExecutor } from '../query_executor.ts';
import type { QueryContext } from '../query_kind.ts';
import { queryTransaction } from '../query_source.ts';
import type { RunningQueries } from '../running_queries.ts';
import { toQueryError } from '../sql_errors.ts';

/** The dependencies of editors of queries. */
export interface EditorService {
  readonly pool: Pool;
  readonly source: SourceConnections;
  readonly running: RunningQueries;
  readonly executor: QueryExecutor;
  readonly settings: Settings;
}

/** Who writes a query. */
export interface EditorRequest {
  readonly team_id: number;
  readonly key_id: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/**
 * Reads from the source in a slot of queries, so that editors take no more of it than queries may.
 * @throws QueryNotStarted, QuerySlotsBusy, QueryInterrupted, ClientDisconnected, QueryError
 */
export async function readForEditor<Result>(
  { running, source, settings }: EditorService,
  request: EditorRequest,
  read: (given: {
    readonly connection: QueryConnection;
    readonly progress: QueryContext['progress'];
  }) => Promise<Result>,
): Promise<Result> {
  const transaction = queryTransaction(settings.EXPORTD_QUERY_TIMEOUT, request.team_id);
  try {
    return await running.run({ ...request, execution_id: null }, ({ signal, progress }) =>
      source.read(transaction, signal, ({ connection }) =>
        read({ connection: postgresConnection(connection), progress }),
      ),
    );
  } catch (error) {
    throw error instanceof SourceBusy ? new QueryNotStarted() : (toQueryError(error) ?? error);
  }
}
