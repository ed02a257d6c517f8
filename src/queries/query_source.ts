import type { Settings } from '../config/settings.ts';
import { applicationName } from '../source/postgres_source.ts';
import { connectToSource, type SourceConnections } from '../source/source_connection.ts';

/**
 * Queries time out before PostgreSQL's statement timeout so that they can report it. PostgreSQL ends the rest this much
 * later.
 */
const serverGraceMs = 5_000;

/**
 * A process's connections to the source for queries: a small separate pool, so that exports and queries do not wait for
 * each other. They carry exportd's application name, because they write nothing an export would have to wait for.
 */
export const connectQueriesToSource = (
  settings: Pick<
    Settings,
    'DATABASE_URL' | 'SOURCE_DATABASE_URL' | 'EXPORTD_QUERY_SLOTS' | 'EXPORTD_QUERY_ASYNC_TIMEOUT'
  >,
): SourceConnections =>
  connectToSource({
    sourceUrl: settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL,
    applicationName,
    maxConnections: settings.EXPORTD_QUERY_SLOTS,
    statementTimeoutMs: settings.EXPORTD_QUERY_ASYNC_TIMEOUT + serverGraceMs,
  });

/** The PostgreSQL settings of a query's transaction. */
export const queryTransaction = (timeoutMs: number): Readonly<Record<string, string>> => ({
  statement_timeout: String(timeoutMs + serverGraceMs),
  // PostgreSQL notices within this time that the process waiting for the rows was killed.
  client_connection_check_interval: '1s',
});
