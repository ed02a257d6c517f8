import type { SortKey } from '../domain/sort_key.ts';
import {
  fingerprintByScans,
  type TimeBounds,
  keyColumns,
  splitKeysQuery,
  jsonColumn,
  pageOfKeyQuery,
  storedValues,
  parameter,
  type ModelQuery,
  type PageKeys,
} from './model_query.ts';
import {
  columnTypesOfExisting,
  RelationNotFound,
  requireColumns,
  type CatalogConnection,
  type ColumnTypes,
  type Relations,
} from './relations.ts';
import {
  selectionConditions,
  rowQueryStatement,
  type RowQueryStatement,
  sortKeyColumns,
} from './row_query/selected_rows.ts';
import type { ColumnAccess } from './row_query/model_row.ts';
import { withContractTypes } from './contract_types.ts';
import type { ExportedColumn } from './row_selection.ts';
import type { RowRange } from './source.ts';

/** The columns of an export of events. */
export const eventsColumns: readonly ExportedColumn[] = [
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

const interval: TimeBounds = {
  start: parameter('start', 'timestamptz'),
  end: parameter('end', 'timestamptz'),
};

const keyOf = (bound: 'after' | 'until'): string =>
  `(${parameter(`${bound}_inserted_at`, 'timestamptz')}, ${parameter(`${bound}_id`, 'uuid')})`;

/** Columns and types of the relations that events are read from. */
interface EventColumnTypes {
  readonly events: ColumnTypes;
  /** Columns of the persons relation; absent when it does not exist. */
  readonly persons?: ColumnTypes | undefined;
  /** Those of the distinct ids, likewise. */
  readonly distinctIds?: ColumnTypes | undefined;
}

/** Of a relation that does not exist. */
const noColumns: ColumnTypes = new Map();

/** Reads the columns from the catalog. The relations of persons may be missing. @throws RelationNotFound */
export async function eventColumnTypes(
  connection: CatalogConnection,
  relations: Relations,
): Promise<EventColumnTypes> {
  const { events, persons, person_distinct_ids } = relations;
  const present = await columnTypesOfExisting(connection, [events, persons, person_distinct_ids]);
  return {
    events: requireColumns(present, events),
    persons: present.get(persons),
    distinctIds: present.get(person_distinct_ids),
  };
}

/**
 * Builds the statements that read the selected events, depending on the columns of the events relation.
 * @throws UnsupportedSelection, RowQueryFailed, RelationNotFound if they need persons and the source has none
 */
export function eventsQuery(
  relations: Relations,
  types: EventColumnTypes,
  { team_id, selection }: Pick<RowRange, 'team_id' | 'selection'>,
): ModelQuery {
  const carriesPerson = types.events.has('person_properties');
  let readsPerson = !carriesPerson && !selection.query;
  const person = carriesPerson
    ? { expression: 'e.person_properties', type: types.events.get('person_properties') }
    : { expression: joinedPersonProperties(relations, types), type: types.persons?.get('properties') };
  const event = { expression: 'e.properties', type: types.events.get('properties') };
  const rowColumns: ColumnAccess = {
    sql: (name) => {
      if (name !== 'person_properties') return `e."${name === '_inserted_at' ? 'inserted_at' : name}"`;
      readsPerson ||= !carriesPerson;
      return person.expression;
    },
    jsonType: (name) => (name === 'person_properties' ? person.type : event.type),
  };
  const sources = {
    events: withContractTypes({ relation: relations.events, columns: types.events }, 'events'),
    persons: withContractTypes(
      { relation: relations.persons, columns: types.persons ?? noColumns },
      'persons',
    ),
    personDistinctIds: withContractTypes(
      { relation: relations.person_distinct_ids, columns: types.distinctIds ?? noColumns },
      'person_distinct_ids',
    ),
  };
  const rowQuery =
    selection.query &&
    rowQueryStatement('events', selection.query, team_id, {
      selected: rowColumns,
      filtered: rowColumns,
      ...sources,
    });
  const conditions = selectionConditions(selection, {
    model: 'events',
    team_id,
    access: rowColumns,
    ...sources,
  });
  const only = selection.only && conditionOfKeys(selection.only);
  readsPerson ||=
    conditions.readsPerson || (rowQuery !== undefined && rowQuery !== null && readsJoinedPerson(rowQuery));
  if (readsPerson && !types.persons)
    throw new RelationNotFound(
      `Relation ${relations.persons} does not exist in the source, or exportd's role cannot see it. Exports of events read it for the persons of events: name it with EXPORTD_PERSONS_RELATION, or give ${relations.events} the column person_properties and use no fields of person.`,
    );
  const selected = rowQuery
    ? `e.inserted_at::timestamptz, e.uuid::uuid, ${rowQuery.selected}`
    : `e.uuid::uuid, e."timestamp"::timestamptz, e.inserted_at::timestamptz, e.created_at::timestamptz,
    e.event::text, ${jsonColumn(event.expression, event.type)}, e.distinct_id::text,
    e.elements_chain::text, ${jsonColumn(person.expression, person.type)}, e.person_id::uuid`;
  const key = '(e.inserted_at, e.uuid)';
  // Only one lower bound: the planner assumes that two are independent, and underestimates the number of rows.
  const within = (
    { after, until }: PageKeys,
    joins = '',
    bounds: TimeBounds = interval,
  ): string => `from ${relations.events} e${rowQuery?.conditionJoins ?? ''}${joins}
    where e.team_id = ${parameter('team_id', 'int')}
    and ${after ? `${key} > ${keyOf('after')}` : `e.inserted_at >= ${bounds.start}`}
    and e.inserted_at < ${bounds.end} ${until ? `and ${key} ${until === 'exclusive' ? '<' : '<='} ${keyOf('until')}` : ''}
    ${conditions.sql}${rowQuery?.condition ?? ''}${only?.sql ?? ''}`;
  const inRange = within({ after: false, until: false });
  return {
    columns: rowQuery ? [...sortKeyColumns('uuid', 'uuid'), ...rowQuery.columns] : eventsColumns,
    key: rowQuery ? { inserted_at: 0, id: 1 } : { inserted_at: 2, id: 0 },
    // Without it, the planner may sort the rest of the range for each page when it expects few rows.
    settings: { enable_sort: 'off', ...conditions.settings, ...rowQuery?.settings, ...only?.settings },
    page: (rows, keys) => `select ${selected} ${within(keys, rowQuery?.joins)}
      order by e.inserted_at, e.uuid fetch first ${rows} rows with ties`,
    pageOfKey: (rows, { beforeHash }) =>
      pageOfKeyQuery(
        {
          selected,
          from: `from ${relations.events} e${rowQuery?.conditionJoins ?? ''}${rowQuery?.joins ?? ''}`,
          where: `where e.team_id = ${parameter('team_id', 'int')} and ${key} = ${keyOf('after')}
            ${conditions.sql}${rowQuery?.condition ?? ''}${only?.sql ?? ''}`,
          // Without the persons relation, whose rows change.
          values: storedValues(
            eventsColumns
              .map(({ name, type }) => ({ name: name === '_inserted_at' ? 'inserted_at' : name, type }))
              .filter(({ name }) => types.events.has(name)),
            'e',
          ),
        },
        rows,
        beforeHash,
      ),
    count: () => `select count(*) as rows ${inRange}`,
    keys: (rows, keys) => `select ${keyColumns('e.inserted_at', 'e.uuid')} ${within(keys)}
      order by e.inserted_at, e.uuid fetch first ${rows} rows with ties`,
    hash: 'uuid_hash_extended/0',
    fingerprint: () =>
      fingerprintByScans('uuid_hash_extended/0', 'e.uuid::uuid', (bounds) =>
        within({ after: false, until: false }, '', bounds),
      ),
    selectsByPerson: rowQuery?.conditionReadsPerson === true || conditions.readsPerson,
    splitKeys: () => splitKeysQuery(`select e.inserted_at, e.uuid as id ${inRange}`),
  };
}

/** A condition that selects the rows with these keys, preceded by `and`. */
const conditionOfKeys = (keys: readonly SortKey[]) => ({
  sql: ` and (e.inserted_at, e.uuid) in (
    select * from unnest(string_to_array((select current_setting('exportd.only_times')), ',')::timestamptz[],
      string_to_array((select current_setting('exportd.only_ids')), ',')::uuid[]))`,
  settings: {
    'exportd.only_times': keys.map(({ inserted_at }) => inserted_at).join(','),
    'exportd.only_ids': keys.map(({ id }) => id).join(','),
  },
});

/** Whether a query joins the persons relation. A row of events joins nothing else. */
const readsJoinedPerson = ({ joins, conditionJoins }: RowQueryStatement): boolean =>
  joins !== '' || conditionJoins !== '';

/**
 * The current properties of the person, for events that do not store them. A subquery instead of a join: it neither
 * drops nor duplicates events, whatever the person relations contain.
 */
const joinedPersonProperties = (
  { persons, person_distinct_ids }: Relations,
  { events, distinctIds }: EventColumnTypes,
): string => {
  // Equal types are compared as they are, for an index of them.
  const type = events.get('distinct_id') === distinctIds?.get('distinct_id') ? '' : '::text';
  return `(select p.properties from ${persons} p where p.team_id = e.team_id and not p.is_deleted and p.id = coalesce(
     (select m.person_id from ${person_distinct_ids} m
      where m.team_id = e.team_id and m.distinct_id${type} = e.distinct_id${type} and not m.is_deleted limit 1),
     e.person_id::uuid) limit 1)`;
};
