import type { Schema } from '../../dialect/schema.ts';
import type { Project } from '../../dialect/resolve/statement.ts';
import { relationsOf } from '../../source/relations.ts';
import { readQueryProject } from '../project.ts';
import type { QueryProject } from '../query_kind.ts';
import { readSourceSchema } from '../source_schema.ts';
import { readForEditor, type EditorRequest, type EditorService } from './read_for_editor.ts';

/** What the text of a query is checked against. */
export interface ProjectSchema {
  readonly project: QueryProject;
  readonly now: Date;
  readonly schema: Schema;
}

/** Reads the schemas of projects for editors, which ask for them with every key that is typed. */
export interface ProjectSchemas {
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
