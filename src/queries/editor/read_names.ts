import { relationsOf } from '../../source/relations.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { readVocabulary } from '../draft_sql/vocabulary.ts';
import { readQueryProject } from '../project.ts';
import { readForEditor, type EditorRequest, type EditorService } from './read_for_editor.ts';

/** The names in a project's newest rows, the most frequent first. */
export interface ProjectNames {
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
