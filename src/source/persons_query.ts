import { splitKeysQuery, jsonColumn, parameter, type ModelQuery, type PageKeys } from './model_query.ts';
import type { ColumnTypes, Relations } from './relations.ts';
import { sortKeyColumns, rowQueryStatement } from './row_query/row_query_statement.ts';
import { selectionConditions } from './selection_conditions.ts';
import type { ExportedColumn, RowRange } from './source.ts';

/** The columns of an export of persons, whatever relations they are read from. */
export const personsColumns: readonly ExportedColumn[] = [
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

/**
 * How the selected persons are read: one row per distinct id, also of a person that is gone, by the columns of the
 * persons relation.
 *
 * What is newest of a distinct id is either its mapping or its person, so the rows are those of two branches, each in
 * the order of one relation's times. A page takes no more from a branch than it may hold itself: its cost does not grow
 * with what is left of the window.
 * @throws UnsupportedSelection, RowQueryFailed
 */
export function personsQuery(
  relations: Relations,
  types: ColumnTypes,
  { team_id, selection }: Pick<RowRange, 'team_id' | 'selection'>,
): ModelQuery {
  const properties = { expression: 'p.properties', type: types.get('properties') };
  const conditions = selectionConditions(selection, { properties: { person: properties } });
  const persons = { relation: relations.persons, columns: types };
  const chosen =
    selection.query &&
    rowQueryStatement('persons', selection.query, team_id, {
      selected: { sql: (name) => stateColumn(name), jsonType: () => exportedJsonType(properties.type) },
      filtered: { sql: (name) => branchColumns[name] ?? 'null', jsonType: () => properties.type },
      events: persons,
      persons,
    });
  const branches = branchesOf(relations, `${conditions.sql}${chosen?.condition ?? ''}`);
  const everything = stateColumns(jsonColumn(properties.expression, properties.type));
  const all = (columns: (branch: Branch) => string): string =>
    branches
      .map((branch) => `select ${columns(branch)} ${within(branch, { after: false, until: false })}`)
      .join(' union all ');
  return {
    columns: chosen ? [...sortKeyColumns('distinct_id', 'text'), ...chosen.columns] : personsColumns,
    key: chosen ? { inserted_at: 0, id: 1 } : { inserted_at: 7, id: 1 },
    settings: { ...conditions.settings, ...chosen?.settings },
    page: (rows, keys) => {
      const first = `fetch first ${rows} rows with ties`;
      const pages = branches.map(
        (branch) => `(select ${everything}, ${branch.time}::timestamptz as _inserted_at, ${isDeleted}
          ${within(branch, keys)} order by ${branch.time}, ${distinctId} ${first})`,
      );
      const page = `select * from (${pages.join(' union all ')}) as state order by _inserted_at, distinct_id ${first}`;
      if (!chosen) return page;
      // What the owner chose is computed of the rows of the page alone.
      return `select state._inserted_at, state.distinct_id, ${chosen.selected} from (${page}) as state
        order by state._inserted_at, state.distinct_id`;
    },
    count: () => `select count(*) as rows from (${all(() => '')}) as state`,
    splitKeys: () =>
      splitKeysQuery(all(({ time }) => `${time}::timestamptz as inserted_at, ${distinctId} as id`)),
  };
}

const distinctId = 'm.distinct_id::text collate "C"';
const isDeleted = '(m.is_deleted or coalesce(p.is_deleted, false)) as is_deleted';

/** The columns of a page's rows; texts are compared and folded as the database does everywhere else. */
const stateColumn = (name: string): string =>
  name === 'distinct_id' ? '(state.distinct_id collate "default")' : `state."${name}"`;

/** Of what is not JSON by its type a page has it cast; see `jsonColumn`. */
const exportedJsonType = (type: string | undefined): string => (type === 'jsonb' ? type : 'json');

/** The same columns in a branch. */
const branchColumns: Readonly<Record<string, string>> = {
  team_id: 'm.team_id',
  distinct_id: 'm.distinct_id',
  person_id: 'm.person_id',
  properties: 'p.properties',
  person_distinct_id_version: 'm.version',
  person_version: 'p.version',
  created_at: 'p.created_at',
  _inserted_at: 'greatest(p.updated_at, m.updated_at)',
  is_deleted: '(m.is_deleted or coalesce(p.is_deleted, false))',
};

const stateColumns = (properties: string): string => `m.team_id::int as team_id, ${distinctId} as distinct_id,
  m.person_id::uuid as person_id, ${properties} as properties, m.version::bigint as person_distinct_id_version,
  p.version::bigint as person_version, p.created_at::timestamptz as created_at`;

/** The distinct ids of which one relation holds what is newest. */
interface Branch {
  /** The time of the newest. */
  readonly time: string;
  /** `from`, `where` and conditions, but for those on the time. */
  readonly rows: string;
  /** The rows behind the first key of a stretch; an index bounds what is read for them. */
  readonly after: string;
}

const [start, end] = [parameter('start', 'timestamptz'), parameter('end', 'timestamptz')];
const [afterTime, untilTime] = [
  parameter('after_inserted_at', 'timestamptz'),
  parameter('until_inserted_at', 'timestamptz'),
];
const [afterId, untilId] = [
  `${parameter('after_id', 'text')} collate "C"`,
  `${parameter('until_id', 'text')} collate "C"`,
];

/**
 * A time is missing only where a user's relations leave it out; then the other one is the newer. The conditions are
 * worded so that the planner expects about as many rows as there are: with too few in mind it would sort all of them for
 * every page.
 */
const branchesOf = ({ persons, person_distinct_ids }: Relations, conditions: string): Branch[] => [
  {
    time: 'm.updated_at',
    rows: `from ${person_distinct_ids} m left join ${persons} p on p.team_id = ${team} and p.id = m.person_id
      where m.team_id = ${team} and (p.updated_at > m.updated_at) is not true ${conditions}`,
    after: `(m.updated_at, ${distinctId}) > (${afterTime}, ${afterId})`,
  },
  {
    time: 'p.updated_at',
    rows: `from ${persons} p join ${person_distinct_ids} m on m.team_id = ${team} and m.person_id = p.id
      where p.team_id = ${team} and (p.updated_at <= m.updated_at) is not true ${conditions}`,
    after: `p.updated_at >= ${afterTime} and not (p.updated_at = ${afterTime} and ${distinctId} <= ${afterId})`,
  },
];

/** The rows of a branch within the window, and between the keys as far as there are any. */
const within = ({ time, rows, after }: Branch, keys: PageKeys): string => `${rows}
  and ${keys.after ? after : `${time} >= ${start}`} and ${time} < ${end}
  ${keys.until ? `and ${time} <= ${untilTime} and not (${time} = ${untilTime} and ${distinctId} > ${untilId})` : ''}`;
