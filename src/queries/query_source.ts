import type { Settings } from '../config/settings.ts';
import { applicationName } from '../source/postgres_source.ts';
import { connectToSource, type SourceConnections } from '../source/source_connection.ts';

/** Queries give up before PostgreSQL does, so that they can say so; this much later PostgreSQL ends what is left. */
const serverGraceMs = 5_000;

/**
 * The connections of a process's queries to the source: few and their own, so that neither exports nor queries wait for
 * the other. By exportd's own application name, since they write nothing that an export would have to wait for.
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

/** The settings of one query's transaction. */
export const queryTransaction = (timeoutMs: number): Readonly<Record<string, string>> => ({
  statement_timeout: String(timeoutMs + serverGraceMs),
  // Of a process that was killed, PostgreSQL notices within this time that nobody waits for the rows.
  client_connection_check_interval: '1s',
});
