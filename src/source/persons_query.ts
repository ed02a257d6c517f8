import {
  fingerprintByGroups,
  keyColumns,
  splitKeysQuery,
  jsonColumn,
  pageOfKeyQuery,
  storedValues,
  parameter,
  type ModelQuery,
  type PageKeys,
} from './model_query.ts';
import { withContractTypes } from './contract_types.ts';
import type { ColumnTypes, Relations } from './relations.ts';
import type { ColumnAccess } from './row_query/model_row.ts';
import { rowQueryStatement, sortKeyColumns, selectionConditions } from './row_query/selected_rows.ts';
import type { ExportedColumn } from './row_selection.ts';
import type { RowRange } from './source.ts';

/** The columns of an export of persons. */
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
 * Builds the statements that read the selected persons: one row per distinct id, including deleted persons.
 * The newest state of a distinct id is that of its mapping or that of its person. The rows are therefore the union of
 * two branches, each in the order of one relation's times. A page reads no more from a branch than it may hold, so
 * its cost does not depend on how many rows of the interval remain.
 * @throws UnsupportedSelection, RowQueryFailed
 */
export function personsQuery(
  relations: Relations,
  types: ColumnTypes,
  { team_id, selection }: Pick<RowRange, 'team_id' | 'selection'>,
): ModelQuery {
  const properties = { expression: 'p.properties', type: types.get('properties') };
  const persons = withContractTypes({ relation: relations.persons, columns: types }, 'persons');
  const filtered: ColumnAccess = {
    sql: (name) => branchColumns[name] ?? 'null',
    jsonType: () => properties.type,
  };
  const conditions = selectionConditions(selection, {
    model: 'persons',
    team_id,
    access: filtered,
    events: persons,
    persons,
    personDistinctIds: persons,
  });
  const rowQuery =
    selection.query &&
    rowQueryStatement('persons', selection.query, team_id, {
      selected: { sql: (name) => stateColumn(name), jsonType: () => exportedJsonType(properties.type) },
      filtered,
      events: persons,
      persons,
    });
  const branches = branchesOf(relations, `${conditions.sql}${rowQuery?.condition ?? ''}`);
  const personState = stateColumns(jsonColumn(properties.expression, properties.type));
  const all = (columns: (branch: Branch) => string): string =>
    branches
      .map((branch) => `select ${columns(branch)} ${within(branch, { after: false, until: false })}`)
      .join(' union all ');
  // The query's expressions are computed for the rows of a page only.
  const selected = (page: string): string =>
    rowQuery
      ? `select state._inserted_at, state.distinct_id, ${rowQuery.selected} from (${page}) as state
        order by state._inserted_at, state.distinct_id`
      : page;
  return {
    columns: rowQuery ? [...sortKeyColumns('distinct_id', 'text'), ...rowQuery.columns] : personsColumns,
    key: rowQuery ? { inserted_at: 0, id: 1 } : { inserted_at: 7, id: 1 },
    settings: { ...conditions.settings, ...rowQuery?.settings },
    page: (rows, keys) =>
      selected(pageOf(branches, (time) => `${personState}, ${time}, ${isDeleted}`, rows, keys)),
    ofTime: {
      ids: (until) => idsOfTime(branches, until),
      page: () =>
        selected(
          pageOfIds(
            branches,
            ({ time }) => `${personState}, ${time}::timestamptz as _inserted_at, ${isDeleted}`,
          ),
        ),
    },
    pageOfKey: (rows, { beforeHash }) => {
      const ofKey = branches.map(
        ({
          time,
          rows: ofBranch,
        }) => `select ${personState}, ${time}::timestamptz as _inserted_at, ${isDeleted}
          ${ofBranch()} and ${time} = ${afterTime} and ${distinctId} = ${afterId}`,
      );
      return pageOfKeyQuery(
        {
          selected: rowQuery ? `state._inserted_at, state.distinct_id, ${rowQuery.selected}` : 'state.*',
          from: `from (${ofKey.join(' union all ')}) as state`,
          where: 'where true',
          values: storedValues(personsColumns, 'state'),
        },
        rows,
        beforeHash,
      );
    },
    keys: (rows, keys) =>
      `select ${keyColumns('state._inserted_at', 'state.distinct_id')}, state.version
       from (${pageOf(branches, (time) => `${distinctId} as distinct_id, ${time}, ${version} as version`, rows, keys)}) as state
       order by state._inserted_at, state.distinct_id`,
    count: () => `select count(*) as rows from (${all(() => '')}) as state`,
    hash: 'hashtextextended/0',
    fingerprint: ({ ofStates }) =>
      fingerprintByGroups(
        'hashtextextended/0',
        all(
          ({ time }) =>
            `${time}::timestamptz as inserted_at, ${ofStates ? `${distinctId} || ' ' || ${version}` : distinctId} as id`,
        ),
        ofStates ? '(extract(epoch from inserted_at) * 1000000)::bigint' : '0',
      ),
    // A person that is no longer selected has changed, and is in a later interval.
    selectsByPerson: false,
    splitKeys: () =>
      splitKeysQuery(all(({ time }) => `${time}::timestamptz as inserted_at, ${distinctId} as id`)),
  };
}

const distinctId = 'm.distinct_id::text collate "C"';
const version = `(coalesce(m.version::bigint::text, '') || '/' || coalesce(p.version::bigint::text, ''))`;
const isDeleted = '(m.is_deleted or coalesce(p.is_deleted, false)) as is_deleted';

/** The columns of a page's rows. Strings use the default collation of the database. */
const stateColumn = (name: string): string =>
  name === 'distinct_id' ? '(state.distinct_id collate "default")' : `state."${name}"`;

/** Columns of other types have been cast to `json` in the page; see `jsonColumn`. */
const exportedJsonType = (type: string | undefined): string => (type === 'jsonb' ? type : 'json');

/** The same columns within a branch. */
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

/** The distinct ids whose newest state comes from one of the relations. */
interface Branch {
  /** The time of the newest state. */
  readonly time: string;
  /** `from` and `where` with all conditions except those on the time. @param project its number, as SQL */
  readonly rows: (project?: string) => string;
  /** The condition for rows after the lower key. An index limits the rows that are read for it. */
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
 * A time can be missing only in a user's own relations; then the other one is newer. The conditions are written so
 * that the planner's estimate is about right. If it expected too few rows, it would sort all of them for each page.
 */
const branchesOf = ({ persons, person_distinct_ids }: Relations, conditions: string): Branch[] => [
  {
    time: 'm.updated_at',
    rows: (project = team) => `from ${person_distinct_ids} m
      left join ${persons} p on p.team_id = ${project} and p.id = m.person_id
      where m.team_id = ${project} and (p.updated_at > m.updated_at) is not true ${conditions}`,
    after: `(m.updated_at, ${distinctId}) > (${afterTime}, ${afterId})`,
  },
  {
    time: 'p.updated_at',
    rows: (project = team) => `from ${persons} p
      join ${person_distinct_ids} m on m.team_id = ${project} and m.person_id = p.id
      where p.team_id = ${project} and (p.updated_at <= m.updated_at) is not true ${conditions}`,
    after: `p.updated_at >= ${afterTime} and not (p.updated_at = ${afterTime} and ${distinctId} <= ${afterId})`,
  },
];

/** The first rows of all branches between the given keys, in order. */
function pageOf(
  branches: readonly Branch[],
  columns: (time: string) => string,
  rows: number,
  keys: PageKeys,
): string {
  const first = `fetch first ${rows} rows with ties`;
  const pages = branches.map(
    (branch) => `(select ${columns(`${branch.time}::timestamptz as _inserted_at`)}
      ${within(branch, keys)} order by ${branch.time}, ${distinctId} ${first})`,
  );
  return `select * from (${pages.join(' union all ')}) as state order by _inserted_at, distinct_id ${first}`;
}

/** Ids of one time that are read at once, and their bytes: what a range holds of them in memory. */
const [maxIds, maxIdBytes] = [250_000, 16 * 1_024 * 1_024];

/** Persons that one UPDATE changed have one time, and no index orders them by distinct id: all of them are sorted. */
const idsOfTime = (branches: readonly Branch[], until: PageKeys['until']): string => {
  const ids = branches.map(
    (branch) =>
      `select ${distinctId} as id ${within(branch, { after: true, until })} and ${branch.time} = ${afterTime}`,
  );
  return `select id from (
      select id, sum(octet_length(id)) over (order by id rows unbounded preceding) as bytes
      from (select distinct id from (${ids.join(' union all ')}) as state order by id fetch first ${maxIds} rows only) as state
    ) as state where bytes <= ${maxIdBytes} order by id`;
};

/**
 * The rows of one time with the ids of a page, found by the indexes on ids. While PostgreSQL has not analyzed the bulk update, it
 * expects few rows of this time and project, and would read all of them for each id: no index supports IS NOT DISTINCT
 * FROM, and for a project that is no constant it expects as many rows as others have.
 */
const pageOfIds = (branches: readonly Branch[], columns: (branch: Branch) => string): string => {
  const rows = branches.map(
    (branch) => `select ${columns(branch)} ${branch.rows('wanted.team_id')}
      and m.distinct_id::text = wanted.id and ${branch.time} is not distinct from ${afterTime}`,
  );
  return `select state.*
    from (select ${team} as team_id, id from jsonb_array_elements_text(${parameter('ids', 'jsonb')}) as id offset 0) as wanted
    cross join lateral (${rows.join(' union all ')} offset 0) as state order by state._inserted_at, state.distinct_id`;
};

/** The rows of a branch within the interval and between the given keys. */
const within = ({ time, rows, after }: Branch, keys: PageKeys): string => `${rows()}
  and ${keys.after ? after : `${time} >= ${start}`} and ${time} < ${end}
  ${keys.until ? `and ${time} <= ${untilTime} and not (${time} = ${untilTime} and ${distinctId} ${keys.until === 'exclusive' ? '>=' : '>'} ${untilId})` : ''}`;
