import type { Settings } from '../config/settings.ts';
import { type ExplainedQuery, explainQuery } from '@exportd/dialect/compile/compile_query';
import type { Pool } from '../journal/database.ts';
import { applicationName } from '../source/postgres_source.ts';
import { type RelationSettings, relationsOf } from '../source/relations.ts';
import {
  connectToSource,
  type RestrictedRole,
  type SourceConnections,
  type StatementResources,
} from '../source/source_connection.ts';
import { compilerProject } from './dialect_reader.ts';
import { withInferredTypes } from './inferred_types.ts';
import { postgresWarehouse, readQueryProject } from './postgres_warehouse.ts';
import type { QueryProject } from './query_kind.ts';
import {
  type QueryRole,
  queryRoleOf,
  type QueryRoleSettings,
  querySchema,
  signCancellation,
  signTeam,
  teamSetting,
  teamSignatureSetting,
} from './query_role/query_role.ts';
import { ControlDatabaseFailed, inferTypes } from './sample_properties.ts';
import type { QueryRelations } from './source_schema.ts';
import type { Warehouse } from './warehouse.ts';

/** The settings of what a query's statements may use in PostgreSQL. */
export type StatementResourceSettings = Pick<
  Settings,
  'EXPORTD_QUERY_WORK_MEM' | 'EXPORTD_QUERY_TEMP_FILE_LIMIT'
>;

/** PostgreSQL's largest value of a setting in kB. */
const maxKilobytes = 2_147_483_647;

const kilobytes = (bytes: number): string => `${Math.min(Math.ceil(bytes / 1_024), maxKilobytes)}kB`;

/** PostgreSQL's smallest `work_mem`. */
const minWorkMem = 64 * 1_024;

/** So many sorts and hash tables of a statement may each use all of `work_mem`; more of them share that memory. */
const fullOperations = 8;

/** The `work_mem` of a statement that may keep so many sorts and hash tables in memory at the same time. */
export const workMemOf = (
  { EXPORTD_QUERY_WORK_MEM: bytes }: Pick<Settings, 'EXPORTD_QUERY_WORK_MEM'>,
  memoryOperations: number,
): string =>
  kilobytes(Math.max(minWorkMem, (bytes * fullOperations) / Math.max(memoryOperations, fullOperations)));

/** What a query's statements may use, as PostgreSQL writes it. */
export const statementResources = (settings: StatementResourceSettings): StatementResources => ({
  work_mem: workMemOf(settings, 0),
  temp_file_limit: kilobytes(settings.EXPORTD_QUERY_TEMP_FILE_LIMIT),
});

/**
 * Queries time out before PostgreSQL's statement timeout so that they can report it. PostgreSQL ends the rest this much
 * later.
 */
const serverGraceMs = 5_000;

/**
 * A process's connections to the source for queries: a small separate pool, so that exports and queries do not wait for
 * each other. They carry exportd's application name, because they write nothing an export would have to wait for.
 * @throws InvalidRelationName
 */
export const connectQueriesToSource = (
  settings: Pick<Settings, 'SOURCE_DATABASE_URL' | 'EXPORTD_QUERY_SLOTS' | 'EXPORTD_QUERY_ASYNC_TIMEOUT'> &
    QueryRoleSettings &
    RelationSettings &
    StatementResourceSettings,
): SourceConnections => {
  // A wrong name ends the process that starts, not its first query.
  relationsOf(settings);
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

/** What a warehouse needs of the settings. */
export type WarehouseSettings = QueryRelationSettings & Pick<Settings, 'EXPORTD_QUERY_WORK_MEM'>;

type QueryRelationSettings = RelationSettings & Partial<Pick<Settings, 'EXPORTD_QUERY_DATABASE_URL'>>;

/** Quotes the configured names of the relations that queries read. @throws InvalidRelationName */
export const queryRelationsOf = (settings: QueryRelationSettings): QueryRelations => ({
  ...relationsOf(settings),
  hasQueryRole: settings.EXPORTD_QUERY_DATABASE_URL !== undefined,
});

/**
 * Asks the warehouse of a project, in a transaction of its own.
 * @param timeoutMs of its statements
 * @throws RelationNotFound, InvalidRelationName, the errors of the connection, and those of the control database as they are
 */
export const readWarehouse = async <Result>(
  source: SourceConnections,
  settings: WarehouseSettings,
  { project, timeoutMs, signal }: { project: QueryProject; timeoutMs: number; signal?: AbortSignal },
  read: (warehouse: Warehouse) => Promise<Result>,
): Promise<Result> => {
  try {
    return await source.read(queryTransaction(timeoutMs, project.team_id), signal, ({ connection }) =>
      read(
        postgresWarehouse(connection, {
          relations: queryRelationsOf(settings),
          project,
          workMemOf: (operations) => workMemOf(settings, operations),
        }),
      ),
    );
  } catch (error) {
    throw error instanceof ControlDatabaseFailed ? error.cause : error;
  }
};

/** The PostgreSQL settings of a transaction that runs a project's query. */
export const queryTransaction = (timeoutMs: number, teamId: number): Readonly<Record<string, string>> => ({
  [teamSetting]: String(teamId),
  statement_timeout: String(timeoutMs + serverGraceMs),
  // PostgreSQL notices within this time that the process waiting for the rows was killed.
  client_connection_check_interval: '1s',
});

/**
 * Explains a query as the query endpoint would run it for a project, with the relations that the source has now.
 * @throws DialectError, RelationNotFound, and Error if the project does not exist
 */
export async function explainForProject(
  pool: Pool,
  settings: Settings,
  teamId: number,
  query: string,
): Promise<ExplainedQuery> {
  const { project, now } = await readQueryProject(pool, teamId);
  const source = connectQueriesToSource(settings);
  try {
    const timeoutMs = settings.EXPORTD_QUERY_TIMEOUT;
    const maxRows = settings.EXPORTD_QUERY_MAX_ROWS;
    return await readWarehouse(source, settings, { project, timeoutMs }, async (warehouse) => {
      const limits = { row_limit: maxRows, byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE };
      const context = { warehouse, project, now, variables: {}, progress: () => undefined, ...limits };
      const schema = await warehouse.schema();
      const { result } = await withInferredTypes(
        (properties) => inferTypes(pool, context, properties),
        (inference) =>
          Promise.resolve(
            inference.compile(() =>
              explainQuery(query, compilerProject({ project, now, schema: { ...schema, inference } }), {
                rows: { defaultLimit: maxRows, maxRows },
              }),
            ),
          ),
      );
      return result;
    });
  } finally {
    await source.close();
  }
}
