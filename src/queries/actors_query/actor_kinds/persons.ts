import { buildExpression } from '../../../dialect/ast_builders.ts';
import { displayName, displayProperties } from '../../persons/display_name.ts';
import { findPersons } from '../../persons/find_persons.ts';
import type { ActorEntry, ActorKind } from './actor_kind.ts';

const person: ActorEntry = {
  typeName: 'JSON',
  format: (id, actor, distinctIds) =>
    actor ?? (distinctIds.length > 0 ? { id, distinct_ids: distinctIds } : { id }),
};

const personDisplayName: ActorEntry = {
  typeName: 'Tuple(display_name String, id UUID)',
  format: (id, actor, distinctIds) => ({
    display_name:
      id === null ? null : displayName(actor?.properties ?? {}, actor?.distinct_ids ?? distinctIds, id),
    id,
  }),
};

/** The id column of a dialect source may contain anything. */
const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Persons, identified by their UUIDs. */
export const personActors: ActorKind = {
  table: 'persons',
  id: 'id',
  isActor: buildExpression('persons.id = source.actor_id'),
  fields: new Set(['id', 'created_at', 'properties', 'team_id', 'version', 'pdi', 'is_identified']),
  names: ['person', 'actor'],
  entries: { person, actor: person, person_display_name: personDisplayName },
  unsupported: { group: 'These actors are persons. Select person instead.' },
  defaultSelect: ['person', 'id', 'person.$delete'],
  sortedBy: displayProperties[0],
  filtered: () => ({ scope: 'persons' }),
  search: (pattern, id) =>
    buildExpression(
      `persons.properties.email ilike {pattern} or persons.properties.name ilike {pattern}
        or toString({id}) ilike {pattern}
        or {id} in (select person_id from person_distinct_ids where distinct_id ilike {pattern})`,
      { pattern: { value: pattern }, id },
    ),
  find: (reader, ids) =>
    findPersons(
      reader,
      ids.filter((id) => isUuid.test(id)),
    ),
};
