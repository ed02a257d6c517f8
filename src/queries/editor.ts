import { BoundedMap } from '../concurrency/bounded_map.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { SourceBusy, type SourceConnections } from '../source/source_connection.ts';
import { type DialectReader, openDialectReader, type ProjectSchema } from './dialect_reader.ts';
import { type PropertyOwner, readVocabulary } from './vocabulary.ts';
import { readQueryProject } from './postgres_warehouse.ts';
import { QueryNotStarted, toQueryError } from './query_errors.ts';
import type { QueryExecutor } from './query_executor.ts';
import { readWarehouse } from './query_source.ts';
import type { RunningQueries } from './running_queries.ts';

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
 * @throws QueryNotStarted, QuerySlotsBusy, QueryInterrupted, ClientDisconnected, QueryError, RelationNotFound
 */
export async function readForEditor<Result>(
  { pool, running, source, settings }: EditorService,
  request: EditorRequest,
  timeoutMs: number,
  read: (reader: DialectReader, project: ProjectSchema) => Promise<Result>,
): Promise<Result> {
  const { project, now } = await readQueryProject(pool, request.team_id);
  try {
    return await running.run({ ...request, execution_id: null }, ({ signal, progress }) =>
      readWarehouse(source, settings, { project, timeoutMs, signal }, async (warehouse) => {
        const limits = {
          row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
          byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
        };
        const context = { warehouse, project, now, progress, variables: {}, ...limits };
        const reader = await openDialectReader(context);
        return read(reader, { project, now, schema: reader.schema });
      }),
    );
  } catch (error) {
    throw error instanceof SourceBusy ? new QueryNotStarted() : (toQueryError(error) ?? error);
  }
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
  const known = new BoundedMap<number, { readonly read: ProjectSchema; readonly until: number }>(maxProjects);
  return {
    read: async (request) => {
      const found = known.get(request.team_id);
      if (found && found.until > performance.now()) return found.read;
      const timeoutMs = service.settings.EXPORTD_QUERY_TIMEOUT;
      const read = await readForEditor(service, request, timeoutMs, (_reader, project) =>
        Promise.resolve(project),
      );
      known.set(request.team_id, { read, until: performance.now() + maxAgeMs });
      return read;
    },
  };
}

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
  const timeoutMs = service.settings.EXPORTD_QUERY_TIMEOUT;
  const { events, properties } = await readForEditor(service, request, timeoutMs, readVocabulary);
  const ownedBy = (owner: PropertyOwner): readonly string[] =>
    properties
      .filter(({ owners }) => owners.includes(owner))
      .slice(0, maxNames)
      .map(({ key }) => key);
  return {
    events: events.slice(0, maxNames),
    event_properties: ownedBy('event'),
    person_properties: ownedBy('person'),
  };
}
