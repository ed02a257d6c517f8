import type pg from 'pg';
import type { Schema, SourceRelation } from '../dialect/schema.ts';
import { columnTypesOf, type Relations } from '../source/relations.ts';

const sessionReplayEvents = '"public"."session_replay_events"';

/** What queries may read: the relations of the settings with the columns that they have now. @throws RelationNotFound */
export async function readSourceSchema(
  connection: Pick<pg.ClientBase, 'query'>,
  relations: Relations,
): Promise<Schema> {
  const read = async (relation: string): Promise<SourceRelation> => ({
    relation,
    columns: await columnTypesOf(connection, relation),
  });
  return {
    events: await read(relations.events),
    persons: await read(relations.persons),
    personDistinctIds: await read(relations.person_distinct_ids),
    sessionReplayEvents: await read(sessionReplayEvents).catch((error: unknown) => {
      if (Error.isError(error) && error.name === 'RelationNotFound') return null;
      throw error;
    }),
    groups: null,
    warehouse: new Map(),
    eventProperties: new Map(),
    personProperties: new Map(),
  };
}
