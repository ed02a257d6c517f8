import type { Settings } from '../config/settings.ts';
import type { Project } from '../dialect/resolve/statement.ts';
import type { Schema } from '../dialect/schema.ts';
import type { Pool } from '../journal/database.ts';
import { relationsOf } from '../source/relations.ts';
import { SourceBusy, type SourceConnections } from '../source/source_connection.ts';
import { openDialectReader } from './dialect_reader.ts';
import { readVocabulary } from './draft_sql/vocabulary.ts';
import { postgresConnection, type QueryConnection } from './query_connection.ts';
import { QueryNotStarted, toQueryError } from './query_errors.ts';
import type { QueryExecutor } from './query_executor.ts';
import { type QueryContext, type QueryProject, readQueryProject } from './query_kind.ts';
import { queryTransaction } from './query_source.ts';
import type { RunningQueries } from './run_query.ts';
import { readSourceSchema } from './source_schema.ts';

/** The dependencies of editors of queries. */
interface EditorService {
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
async function readForEditor<Result>(
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

/** What the text of a query is checked against. */
interface ProjectSchema {
  readonly project: QueryProject;
  readonly now: Date;
  readonly schema: Schema;
}

/** Reads the schemas of projects for editors, which ask for them with every key that is typed. */
interface ProjectSchemas {
  /** @throws QueryNotStarted, QuerySlotsBusy, QueryInterrupted, ClientDisconnected, RelationNotFound */
  read(request: EditorRequest): Promise<ProjectSchema>;
}

/** New relations appear in editors after this time. */
const maxAgeMs = 30_000;
const maxProjects = 1_000;

/** Creates the schemas of a process. Each is read at most once per 30 s, unless requests overlap. */
export function createProjectSchemas(service: EditorService): ProjectSchemas {
  const known = new Map<number, { readonly read: ProjectSchema; readonly until: number }>();
  return {
    read: async (request) => {
      const found = known.get(request.team_id);
      if (found && found.until > Date.now()) return found.read;
      const { project, now } = await readQueryProject(service.pool, request.team_id);
      const schema = await readForEditor(service, request, ({ connection }) =>
        readSourceSchema(connection, relationsOf(service.settings), project),
      );
      const read = { project, now, schema };
      known.delete(request.team_id);
      known.set(request.team_id, { read, until: Date.now() + maxAgeMs });
      const [oldest] = known.keys();
      if (known.size > maxProjects && oldest !== undefined) known.delete(oldest);
      return read;
    },
  };
}

/** The project as the compiler takes it. */
export const compilerProject = ({ project, now, schema }: ProjectSchema): Project => ({
  teamId: project.team_id,
  timezone: project.timezone,
  weekStartDay: project.week_start_day,
  now: now.toISOString(),
  schema,
});

/** The names in a project's newest rows, the most frequent first. */
interface ProjectNames {
  readonly events: readonly string[];
  readonly event_properties: readonly string[];
  readonly person_properties: readonly string[];
}

const maxNames = 500;

/**
 * Reads the names of a project's events and properties from its newest rows.
 * @throws QueryNotStarted, QuerySlotsBusy, QueryInterrupted, ClientDisconnected, QueryError
 */
export async function readNames(service: EditorService, request: EditorRequest): Promise<ProjectNames> {
  const { settings, pool } = service;
  const { project, now } = await readQueryProject(pool, request.team_id);
  return readForEditor(service, request, async ({ connection, progress }) => {
    const reader = await openDialectReader(
      {
        ...{ connection, project, now, progress, variables: {} },
        row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
        byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
      },
      relationsOf(settings),
    );
    const { events, properties } = await readVocabulary(reader);
    const ownedBy = (owner: 'event' | 'person'): readonly string[] =>
      properties
        .filter(({ owners }) => owners.includes(owner))
        .slice(0, maxNames)
        .map(({ key }) => key);
    return {
      events: events.slice(0, maxNames),
      event_properties: ownedBy('event'),
      person_properties: ownedBy('person'),
    };
  });
}
