import { jsonColumn, parameter, type ModelQuery } from './model_query.ts';
import type { ColumnTypes, Relations } from './relations.ts';
import type { ExportedColumn } from './source.ts';

const columns: readonly ExportedColumn[] = [
  { name: 'uuid', type: 'uuid' },
  { name: 'timestamp', type: 'timestamp' },
  { name: '_inserted_at', type: 'timestamp' },
  { name: 'created_at', type: 'timestamp' },
  { name: 'event', type: 'text' },
  { name: 'properties', type: 'json' },
  { name: 'distinct_id', type: 'text' },
  { name: 'elements_chain', type: 'text' },
  { name: 'person_properties', type: 'json' },
  { name: 'person_id', type: 'uuid' },
];

/** How events are read, by the columns that the events relation has. */
export function eventsQuery(relations: Relations, types: ColumnTypes): ModelQuery {
  const personProperties = types.has('person_properties')
    ? jsonColumn('e.person_properties', types.get('person_properties'))
    : joinedPersonProperties(relations);
  const selected = `e.uuid::uuid, e."timestamp"::timestamptz, e.inserted_at::timestamptz, e.created_at::timestamptz,
    e.event::text, ${jsonColumn('e.properties', types.get('properties'))}, e.distinct_id::text,
    e.elements_chain::text, ${personProperties}, e.person_id::uuid`;
  const inRange = `from ${relations.events} e where e.team_id = ${parameter('team_id', 'int')}
    and e.inserted_at >= ${parameter('start', 'timestamptz')} and e.inserted_at < ${parameter('end', 'timestamptz')}`;
  const afterKey = `and (e.inserted_at, e.uuid) >
    (${parameter('after_inserted_at', 'timestamptz')}, ${parameter('after_id', 'uuid')})`;
  return {
    columns,
    key: { inserted_at: 2, id: 0 },
    page: ({ rows, resumed }) => `select ${selected} ${inRange} ${resumed ? afterKey : ''}
      order by e.inserted_at, e.uuid fetch first ${rows} rows with ties`,
    count: () => `select count(*) as rows ${inRange}`,
  };
}

/**
 * The person's properties as of reading, for events that do not carry them. A subquery rather than a join: whatever the
 * person relations hold, it can neither lose an event nor double it.
 */
const joinedPersonProperties = ({ persons, person_distinct_ids }: Relations): string =>
  `(select p.properties from ${persons} p where p.team_id = e.team_id and not p.is_deleted and p.id = coalesce(
     (select m.person_id from ${person_distinct_ids} m
      where m.team_id = e.team_id and m.distinct_id = e.distinct_id and not m.is_deleted limit 1),
     e.person_id) limit 1)`;
