import type { Settings } from '../config/settings.ts';
import { applicationName } from '../source/postgres_source.ts';
import { connectToSource, type RestrictedRole, type SourceConnections } from '../source/source_connection.ts';
import { querySchema, teamSetting, teamSignatureSetting } from './query_role/authorization_sql.ts';
import { queryRoleOf, type QueryRole, type QueryRoleSettings } from './query_role/query_role.ts';
import { statementResources, type StatementResourceSettings } from './statement_resources.ts';
import { signCancellation, signTeam } from './query_role/signatures.ts';

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
  settings: Pick<Settings, 'SOURCE_DATABASE_URL' | 'EXPORTD_QUERY_SLOTS' | 'EXPORTD_QUERY_ASYNC_TIMEOUT'> &
    QueryRoleSettings &
    StatementResourceSettings,
): SourceConnections => {
  const role = queryRoleOf(settings);
  return connectToSource({
    sourceUrl: role?.url ?? settings.SOURCE_DATABASE_URL,
    ...(role && { restrictedRole: restrictedRole(role) }),
    resources: statementResources(settings),
    applicationName,
    maxConnections: settings.EXPORTD_QUERY_SLOTS,
    statementTimeoutMs: settings.EXPORTD_QUERY_ASYNC_TIMEOUT + serverGraceMs,
  });
};

/** The role of queries reads the rows of one project in each transaction, for which exportd signs. */
const restrictedRole = ({ keys: [key] }: QueryRole): RestrictedRole => ({
  authorize: ({ [teamSetting]: teamId }, transaction): Record<string, string> =>
    teamId === undefined ? {} : { [teamSignatureSetting]: signTeam(key, teamId, transaction) },
  cancelStatement: (pid) => ({
    text: `select ${querySchema}.cancel($1, $2)`,
    values: [pid, signCancellation(key, pid)],
  }),
});

/** The PostgreSQL settings of a transaction that runs a project's query. */
export const queryTransaction = (timeoutMs: number, teamId: number): Readonly<Record<string, string>> => ({
  [teamSetting]: String(teamId),
  statement_timeout: String(timeoutMs + serverGraceMs),
  // PostgreSQL notices within this time that the process waiting for the rows was killed.
  client_connection_check_interval: '1s',
});
