import { cutsOf, jsonColumn, parameter, type ModelQuery } from './model_query.ts';
import type { ColumnTypes, Relations } from './relations.ts';
import type { RowSelection } from './row_selection.ts';
import { selectionConditions } from './selection_conditions.ts';
import type { ExportedColumn } from './source.ts';

const columns: readonly ExportedColumn[] = [
  { name: 'team_id', type: 'integer' },
  { name: 'distinct_id', type: 'text' },
  { name: 'person_id', type: 'uuid' },
  { name: 'properties', type: 'json' },
  { name: 'person_distinct_id_version', type: 'bigint' },
  { name: 'person_version', type: 'bigint' },
  { name: 'created_at', type: 'timestamp' },
  { name: '_inserted_at', type: 'timestamp' },
  { name: 'is_deleted', type: 'boolean' },
];

const team = parameter('team_id', 'int');
const keyOf = (bound: 'after' | 'until'): string =>
  `(${parameter(`${bound}_inserted_at`, 'timestamptz')}, ${parameter(`${bound}_id`, 'text')} collate "C")`;

/**
 * How the selected persons are read: one row per distinct id, also of a person that is gone, by the columns of the
 * persons relation. @throws SelectionNotPossible
 */
export function personsQuery(relations: Relations, types: ColumnTypes, selection: RowSelection): ModelQuery {
  const properties = { expression: 'p.properties', type: types.get('properties') };
  const conditions = selectionConditions(selection, { properties: { person: properties } });
  const selected = `team_id, distinct_id, person_id, properties, person_distinct_id_version, person_version,
    created_at, _inserted_at, is_deleted`;
  const rowsOf = (from: string) => `from (${states(relations, properties, from, conditions.sql)}) state
    where _inserted_at >= ${from} and _inserted_at < ${parameter('end', 'timestamptz')}`;
  const start = parameter('start', 'timestamptz');
  const key = '(_inserted_at, distinct_id)';
  return {
    columns,
    key: { inserted_at: 7, id: 1 },
    settings: conditions.settings,
    page: (rows, { after, until }) =>
      `select ${selected} ${rowsOf(after ? parameter('after_inserted_at', 'timestamptz') : start)}
       ${after ? `and ${key} > ${keyOf('after')}` : ''} ${until ? `and ${key} <= ${keyOf('until')}` : ''}
       order by _inserted_at, distinct_id fetch first ${rows} rows with ties`,
    count: () => `select count(*) as rows ${rowsOf(start)}`,
    cuts: () => cutsOf(`select _inserted_at as inserted_at, distinct_id as id ${rowsOf(start)}`),
  };
}

/**
 * The state of each distinct id that may lie in the window from `from` on. The newer of two times is in a window only
 * if one of them is, so the indexes on both times find the candidates.
 */
function states(
  { persons, person_distinct_ids }: Relations,
  properties: { readonly expression: string; readonly type: string | undefined },
  from: string,
  conditions: string,
): string {
  const changed = `updated_at >= ${from} and updated_at < ${parameter('end', 'timestamptz')}`;
  return `select m.team_id::int as team_id, m.distinct_id::text collate "C" as distinct_id,
      m.person_id::uuid as person_id, ${jsonColumn(properties.expression, properties.type)} as properties,
      m.version::bigint as person_distinct_id_version, p.version::bigint as person_version,
      p.created_at::timestamptz as created_at,
      greatest(p.updated_at, m.updated_at)::timestamptz as _inserted_at,
      (m.is_deleted or coalesce(p.is_deleted, false)) as is_deleted
    from (
      select distinct_id from ${person_distinct_ids} where team_id = ${team} and ${changed}
      union
      select m.distinct_id from (select id from ${persons} where team_id = ${team} and ${changed}) p
        join ${person_distinct_ids} m on m.team_id = ${team} and m.person_id = p.id
    ) candidate
    join ${person_distinct_ids} m on m.team_id = ${team} and m.distinct_id = candidate.distinct_id
    left join ${persons} p on p.team_id = ${team} and p.id = m.person_id
    where true ${conditions}`;
}
