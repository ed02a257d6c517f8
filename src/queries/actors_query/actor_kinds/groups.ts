import { buildExpression } from '../../../dialect/ast_builders.ts';
import type { DialectReader } from '../../dialect_reader.ts';
import { readByIds } from '../../read_by_ids.ts';
import { QueryError } from '../../query_errors.ts';
import type { ActorEntry, ActorKind, ActorValue } from './actor_kind.ts';

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
export function groupActors(index: number, { schema }: DialectReader, attr: string): ActorKind {
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
