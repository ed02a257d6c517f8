import { readableJson } from '@exportd/dialect/resolve/relation';
import type { FingerprintHash } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { utf8Bytes } from '../source/model_query.ts';
import type { ColumnTypes, Relations } from '../source/relations.ts';
import { type CompiledField, compileRowQuery } from '../source/row_query/compile_row_query.ts';
import type { ColumnAccess } from '../source/row_query/model_row.ts';
import {
  createSettingsSql,
  type SelectableRows,
  selectionConditions,
} from '../source/row_query/selected_rows.ts';
import type { RowRange } from '../source/source.ts';
import type { ComparedColumn, RowKey } from '../readers/row.ts';
import { digestSql, jsonDigestSql } from '../readers/value_digest.ts';
import type { HashedId } from './row_fingerprint.ts';

/** The digest of a string of any length, as SQL. */
const text = (expression: string): string => digestSql(plain(expression));

/** The digest of JSON as it was stored, as SQL; `jsonb` never has whitespace that files could lack. */
const json = (expression: string, type: string | undefined): string =>
  type === 'jsonb' ? digestSql(plain(expression)) : jsonDigestSql(plain(expression));

/** A short value as text, as SQL. */
const plain = (expression: string): string => `(${expression})::text`;

/** A time as files contain it, as SQL. Files have none outside the years 0001 to 9999. */
const time = (expression: string): string =>
  `case when ${expression} >= '0001-01-01 00:00:00+00' and ${expression} < '10000-01-01 00:00:00+00'
     then to_char(${expression} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
     else (${expression})::text end`;

/** A date as files contain it, as SQL; see `time`. */
const date = (expression: string): string =>
  `case when ${expression} >= '0001-01-01' and ${expression} < '10000-01-01' then to_char(${expression}, 'YYYY-MM-DD')
     else (${expression})::text end`;

/**
 * Columns of the relations that are read. For events, `persons` is only set if the events do not store person
 * properties.
 */
export interface SourceColumnTypes {
  readonly events?: ColumnTypes;
  readonly persons?: ColumnTypes | undefined;
}

/** The query of an export, as fragments of the statements that compare rows. */
interface QueryColumns {
  /** The comparable columns with their values in SQL. Columns that read the current person are not comparable. */
  readonly columns: ReadonlyMap<string, string>;
  readonly hasKeys: boolean;
  readonly joins: string;
  /** Conditions, each preceded by `and`. */
  readonly condition: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Compiles the query of a range's selection; undefined without a query. @throws DialectError */
function queryColumns(
  { model, team_id, selection: { query } }: RowRange,
  relations: Relations,
  types: SourceColumnTypes,
  access: ColumnAccess,
): QueryColumns | undefined {
  if (!query) return undefined;
  const { fields, condition, conditionPerson } = compileRowQuery(model, query, team_id, {
    selected: access,
    filtered: access,
    events: { relation: relations.events, columns: types.events ?? new Map<string, string>() },
    persons: { relation: relations.persons, columns: types.persons ?? new Map<string, string>() },
  });
  const { text: rendered, settings } = createSettingsSql();
  const isStable = ({ readsPerson }: CompiledField): boolean => !readsPerson;
  return {
    columns: new Map(
      fields
        .filter(isStable)
        .map((field) => [
          field.name,
          comparable(field, rendered(field.sql), access.jsonType(field.column ?? '')),
        ]),
    ),
    hasKeys: ['_inserted_at', model === 'events' ? 'uuid' : 'distinct_id'].every((name) =>
      fields.some((field) => field.name === name && field.column === name),
    ),
    joins: conditionPerson === null ? '' : personJoin(relations, types, rendered(conditionPerson)),
    condition: condition === null ? '' : ` and ${rendered(condition)}`,
    settings,
  };
}

/** Joins the current person of an event, written without the exporting code. */
function personJoin({ persons }: Relations, types: SourceColumnTypes, alias: string): string {
  const properties =
    types.persons?.get('properties') === 'json' ? readableJson('p.properties') : 'p.properties';
  const createdAt =
    types.persons?.get('created_at') === 'timestamp without time zone'
      ? `p.created_at at time zone 'UTC'`
      : 'p.created_at';
  return ` left join lateral (
    select ${properties} as properties, ${createdAt} as created_at from ${persons} p
    where p.team_id = e.team_id and p.id = e.person_id and not p.is_deleted limit 1) ${alias} on true`;
}

function comparable(
  { type, column }: CompiledField,
  expression: string,
  jsonType: string | undefined,
): string {
  switch (type) {
    case 'text':
      return text(expression);
    case 'json':
      return json(expression, column === null ? 'jsonb' : jsonType);
    case 'timestamp':
      return time(expression);
    case 'date':
      return date(expression);
    default:
      return plain(expression);
  }
}

/** A statement with its parameters, and settings of its transaction with further values. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly settings: Readonly<Record<string, string>>;
}

/** The statements that read the rows of a range for comparison. */
export interface RangeStatements {
  /** The comparable columns with their values in SQL; long values are digests. */
  readonly columns: ReadonlyMap<string, string>;
  /** Whether the files contain the keys of the rows. */
  readonly hasKeys: boolean;
  /**
   * The rows after a key, sorted by key, at least `limit` if there are as many: time, id, then the columns. With `only` the rows of
   * that key.
   */
  page(
    columns: readonly ComparedColumn[],
    keys: { readonly after: RowKey | null; readonly only?: RowKey },
    limit: number,
  ): Statement;
  /** Returns one row with the number of rows of a part of the range. */
  count(part: DataInterval): Statement;
  /**
   * Returns index, number of rows and sum of the hashes of their ids for each bucket that has rows, of a part of the range.
   * Buckets are counted from the start of the range.
   */
  fingerprint(widthMs: number, part: DataInterval): Statement;
}

/** Builds the statements for a range, depending on the columns of the relations. @throws UnsupportedSelection */
export const statementsFor = (
  range: RowRange,
  relations: Relations,
  types: SourceColumnTypes,
): RangeStatements =>
  range.model === 'events'
    ? eventStatements(range, relations, types)
    : personStatements(range, relations, types);

function eventStatements(range: RowRange, relations: Relations, types: SourceColumnTypes): RangeStatements {
  const { team_id, interval, selection } = range;
  const carriesPerson = types.events?.has('person_properties') ?? false;
  const person = carriesPerson
    ? { expression: 'e.person_properties', type: types.events?.get('person_properties') }
    : { expression: personOfEvent(relations), type: types.persons?.get('properties') };
  const access: ColumnAccess = {
    sql: (name) =>
      name === 'person_properties'
        ? person.expression
        : `e."${name === '_inserted_at' ? 'inserted_at' : name}"`,
    jsonType: (name) => (name === 'person_properties' ? person.type : types.events?.get('properties')),
  };
  const query = queryColumns(range, relations, types, access);
  const modelColumns = new Map([
    ['uuid', plain('e.uuid')],
    ['timestamp', time('e."timestamp"')],
    ['_inserted_at', time('e.inserted_at')],
    ['created_at', time('e.created_at')],
    ['event', text('e.event')],
    ['properties', json('e.properties', types.events?.get('properties'))],
    ['distinct_id', text('e.distinct_id')],
    ['elements_chain', text('e.elements_chain')],
    ['person_id', plain('e.person_id')],
    // Without this column it is joined while reading, so there is nothing to compare with.
    ...(carriesPerson
      ? [['person_properties', json('e.person_properties', types.events?.get('person_properties'))] as const]
      : []),
  ]);
  const conditions = selectionConditions(selection, selectableRows(range, relations, types, access));
  const columns = query?.columns ?? modelColumns;
  const settings = { ...conditions.settings, ...query?.settings };
  const selectedRows = `from ${relations.events} e${query?.joins ?? ''}
    where e.team_id = $1::int and e.inserted_at >= $2::timestamptz and e.inserted_at < $3::timestamptz
      ${conditions.sql}${query?.condition ?? ''}`;
  return {
    columns,
    hasKeys: query?.hasKeys ?? true,
    page: (compared, { after, only }, limit) => ({
      text: `select ${time('e.inserted_at')}, ${plain('e.uuid')}${valuesOf(columns, compared)} ${selectedRows}
        ${after ? 'and (e.inserted_at, e.uuid) > ($4::timestamptz, $5::uuid)' : ''}
        ${only ? `and (e.inserted_at, e.uuid) = ($${after ? 6 : 4}::timestamptz, $${after ? 7 : 5}::uuid)` : ''}
        order by e.inserted_at, e.uuid fetch first ${limit} rows with ties`,
      values: [team_id, interval.start, interval.end, ...valuesOfKey(after), ...valuesOfKey(only)],
      settings,
    }),
    count: (part) => ({
      text: `select count(*)::text ${selectedRows}`,
      values: [team_id, part.start, part.end],
      settings,
    }),
    fingerprint: (widthMs, part) => ({
      text: `select ${bucketAt('e.inserted_at')}, count(*)::text, sum(uuid_hash_extended(e.uuid, 0))::text
        ${selectedRows} group by 1`,
      values: [team_id, part.start, part.end, widthMs, interval.start],
      settings: { ...settings, ...withoutSort },
    }),
  };
}

const selectableRows = (
  { model, team_id }: RowRange,
  { events, persons, person_distinct_ids }: Relations,
  types: SourceColumnTypes,
  access: ColumnAccess,
): SelectableRows => {
  const none: ReadonlyMap<string, string> = new Map();
  return {
    model,
    team_id,
    access,
    events: { relation: events, columns: types.events ?? none },
    persons: { relation: persons, columns: types.persons ?? none },
    personDistinctIds: { relation: person_distinct_ids, columns: none },
  };
};

const valuesOfKey = (key: RowKey | null | undefined): string[] => (key ? [key.inserted_at, key.id] : []);

/** The bucket of a time, counted from the start of the range ($5); $4 is the length of a bucket in milliseconds. */
const bucketAt = (time: string): string =>
  `floor(extract(epoch from ${time} - $5::timestamptz) * 1000 / $4::bigint)::int::text`;

/** The planner overestimates the number of groups, and would sort all rows on disk. */
const withoutSort = { enable_sort: 'off' };

/** The current properties of an event's person. */
const personOfEvent = ({ persons, person_distinct_ids: mappings }: Relations): string =>
  `(select p.properties from ${persons} p where p.team_id = e.team_id and not p.is_deleted and p.id = coalesce(
     (select m.person_id from ${mappings} m
      where m.team_id = e.team_id and m.distinct_id = e.distinct_id and not m.is_deleted limit 1), e.person_id) limit 1)`;

const insertedAt = 'greatest(p.updated_at, m.updated_at)';

const stateColumns: Readonly<Record<string, string>> = {
  team_id: 'm.team_id',
  distinct_id: 'm.distinct_id',
  person_id: 'm.person_id',
  properties: 'p.properties',
  person_distinct_id_version: 'm.version',
  person_version: 'p.version',
  created_at: 'p.created_at',
  _inserted_at: insertedAt,
  is_deleted: '(m.is_deleted or coalesce(p.is_deleted, false))',
};

const mappedPersons = ({ persons, person_distinct_ids }: Relations): string =>
  `${person_distinct_ids} m left join ${persons} p on p.team_id = m.team_id and p.id = m.person_id`;

/** Returns for each distinct id the time of its newest state, and whether its person exists. */
export const newestStates = (
  relations: Relations,
  teamId: number,
  distinctIds: readonly string[],
): Statement => ({
  text: `select m.distinct_id::text, ${time(insertedAt)}, (p.id is not null)::text from ${mappedPersons(relations)}
    where m.team_id = $1::int and m.distinct_id = any($2::text[])`,
  values: [teamId, distinctIds],
  settings: {},
});

function personStatements(range: RowRange, relations: Relations, types: SourceColumnTypes): RangeStatements {
  const { team_id, interval, selection } = range;
  const access: ColumnAccess = {
    sql: (name) => stateColumns[name] ?? 'null',
    jsonType: () => types.persons?.get('properties'),
  };
  const query = queryColumns(range, relations, types, access);
  const modelColumns = new Map([
    ['team_id', plain('m.team_id')],
    ['distinct_id', text('m.distinct_id')],
    ['person_id', plain('m.person_id')],
    ['properties', json('p.properties', types.persons?.get('properties'))],
    ['person_distinct_id_version', plain('m.version')],
    ['person_version', plain('p.version')],
    ['created_at', time('p.created_at')],
    ['_inserted_at', time(insertedAt)],
    ['is_deleted', plain('m.is_deleted or coalesce(p.is_deleted, false)')],
  ]);
  const conditions = selectionConditions(selection, selectableRows(range, relations, types, access));
  const columns = query?.columns ?? modelColumns;
  const settings = { ...conditions.settings, ...query?.settings };
  const states = (values: string, more = '') =>
    statesOf(relations, values, `${conditions.sql}${query?.condition ?? ''}${more}`);
  const aliased = (compared: readonly ComparedColumn[]) =>
    valuesOf(columns, compared, (index) => ` as value_${index}`);
  return {
    columns,
    hasKeys: query?.hasKeys ?? true,
    page: (compared, { after, only }, limit) => ({
      text: `select ${time('state.at')}, state.id${compared.map((_, index) => `, state.value_${index}`).join('')}
        from (${states(aliased(compared), only ? ` and m.distinct_id = $${after ? 5 : 4}::text` : '')}) state
        ${after ? 'where (state.at, state.id) > ($2::timestamptz, $4::text collate "C")' : ''}
        order by state.at, state.id fetch first ${limit} rows with ties`,
      // The interval is narrowed to start at the key, which excludes earlier states.
      values: [
        team_id,
        after?.inserted_at ?? interval.start,
        interval.end,
        ...(after ? [after.id] : []),
        ...(only ? [only.id] : []),
      ],
      settings,
    }),
    count: (part) => ({
      text: `select count(*)::text from (${states('')}) state`,
      values: [team_id, part.start, part.end],
      settings,
    }),
    fingerprint: (widthMs, part) => ({
      text: `select ${bucketAt('state.at')}, count(*)::text, sum(hashtextextended(state.id, 0))::text
        from (${states('')}) state group by 1`,
      values: [team_id, part.start, part.end, widthMs, interval.start],
      settings: { ...settings, ...withoutSort },
    }),
  };
}

/** Adds up the hashes of ids ($2) by bucket ($1), like `fingerprint`. */
export const hashesOf = (hash: FingerprintHash, ids: readonly HashedId[]): Statement => ({
  text: `select bucket::text, count(*)::text, sum(${hash === 'uuid_hash_extended/0' ? 'uuid_hash_extended(id::uuid, 0)' : `hashtextextended(${utf8Bytes('id')}, 0)`})::text
    from unnest($1::int[], $2::text[]) row(bucket, id) group by bucket`,
  values: [ids.map(({ bucket }) => bucket), ids.map(({ id }) => id)],
  settings: {},
});

/** The newer of two times is in an interval if one of them is and the other is not later. */
const statesOf = (relations: Relations, values: string, conditions: string): string => {
  const { persons, person_distinct_ids: mappings } = relations;
  const id = 'm.distinct_id::text collate "C"';
  return `
    select ${insertedAt} as at, ${id} as id${values} from ${mappedPersons(relations)}
      where m.team_id = $1::int and m.updated_at >= $2::timestamptz and m.updated_at < $3::timestamptz
        and (p.updated_at is null or p.updated_at < $3::timestamptz) ${conditions}
    union all
    select ${insertedAt}, ${id}${values} from ${persons} p
      join ${mappings} m on m.team_id = p.team_id and m.person_id = p.id
      where p.team_id = $1::int and p.updated_at >= $2::timestamptz and p.updated_at < $3::timestamptz
        and m.updated_at < $2::timestamptz ${conditions}`;
};

/** The compared columns as additional columns of a statement. */
const valuesOf = (
  known: ReadonlyMap<string, string>,
  compared: readonly ComparedColumn[],
  alias: (index: number) => string = () => '',
): string =>
  compared.map(({ name }, index) => `, ${known.get(name) ?? 'null::text'}${alias(index)}`).join('');
