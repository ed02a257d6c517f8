import type { Expression } from '@exportd/dialect/ast';
import { buildExpression } from '@exportd/dialect/ast_builders';
import type { FilterTarget } from '../../filters/operand.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { displayName, displayProperties, findPersons, readByIds } from '../persons.ts';
import { QueryError } from '../query_errors.ts';

/** An actor in results; its kind adds further fields. */
interface ActorValue {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly distinct_ids?: readonly string[];
}

/** An entry of `select` that shows actors in place of their ids. */
export interface ActorEntry {
  readonly typeName: string;
  /**
   * Formats an actor.
   * @param actor undefined if it is not stored
   * @param distinctIds the distinct ids under which it acted, according to the source
   */
  readonly format: (
    id: string | null,
    actor: ActorValue | undefined,
    distinctIds: readonly string[],
  ) => unknown;
}

/** A kind of actors: persons or groups. */
export interface ActorKind {
  /** Their table, which is not aliased. */
  readonly table: 'persons' | 'groups';
  /** The id column of the table. */
  readonly id: string;
  /** The join condition with `source.actor_id`. */
  readonly isActor: Expression;
  /** Columns that a source must not hide. */
  readonly fields: ReadonlySet<string>;
  /** Prefixes of a column, such as `person` in `person.properties.email`. */
  readonly names: readonly string[];
  /** Entries of `select` that show actors; `orderBy` can name them too. */
  readonly entries: Readonly<Record<string, ActorEntry>>;
  /** Entries of other kinds of actors, with the error message. */
  readonly unsupported: Readonly<Record<string, string>>;
  readonly defaultSelect: readonly string[];
  /** The property to sort by if `orderBy` names an entry. */
  readonly sortedBy: string;
  /** What filters apply to. */
  readonly filtered: (id: Expression) => Pick<FilterTarget, 'scope' | 'groups'>;
  /** The condition that properties or ids match a pattern. */
  readonly search: (pattern: string, id: Expression) => Expression;
  /** Finds stored actors by their ids. */
  readonly find: (reader: DialectReader, ids: readonly string[]) => Promise<ReadonlyMap<string, ActorValue>>;
}

/** A group in results. */
interface GroupValue extends ActorValue {
  readonly type: 'group';
  readonly created_at: string;
}

const group: ActorEntry = { typeName: 'JSON', format: (id, actor) => actor ?? { id } };

const useGroup = 'These actors are groups. Select group instead.';

/**
 * Groups of one type, identified by their keys.
 * @param index of the type
 * @param attr path of the field that selects groups
 * @throws QueryError if the source has no groups
 */
function groupActors(index: number, { schema }: DialectReader, attr: string): ActorKind {
  if (schema.groups === null)
    throw new QueryError(
      'not_supported',
      'Groups are not available: the source has no relation public.groups. Use persons instead.',
      { attr },
    );
  return {
    table: 'groups',
    id: 'key',
    isActor: buildExpression('groups.key = source.actor_id and groups.index = {index}', {
      index: { value: index },
    }),
    fields: new Set(['id', 'index', 'key', 'created_at', 'updated_at', 'properties', 'team_id']),
    names: ['group', 'actor'],
    entries: { group, actor: group },
    unsupported: { person: useGroup, person_display_name: useGroup, 'person.$delete': useGroup },
    defaultSelect: ['group'],
    sortedBy: 'name',
    filtered: (key) => ({ scope: 'groups', groups: { index, key } }),
    search: (pattern, id) =>
      buildExpression('groups.properties.name ilike {pattern} or {id} ilike {pattern}', {
        pattern: { value: pattern },
        id,
      }),
    find: (reader, ids) => findGroups(reader, index, ids),
  };
}

async function findGroups(
  reader: DialectReader,
  index: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, GroupValue>> {
  const rows = await readByIds(
    reader,
    'select key, properties, created_at from groups where index = {index} and key in {ids}',
    [...new Set(ids)],
    { index },
  );
  return new Map(
    rows.map((row) => {
      const [id, properties, created_at] = row as readonly [string, Record<string, unknown> | null, string];
      return [id, { id, type: 'group', properties: properties ?? {}, created_at }];
    }),
  );
}

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

/**
 * Groups if the source returns groups, else persons.
 * @param groupTypeIndex the type of the groups
 * @param attr path of the field that selects groups
 * @throws QueryError if the source has no groups
 */
export const selectActorKind = (
  groupTypeIndex: number | null | undefined,
  reader: DialectReader,
  attr: string,
): ActorKind =>
  groupTypeIndex === null || groupTypeIndex === undefined
    ? personActors
    : groupActors(groupTypeIndex, reader, attr);
