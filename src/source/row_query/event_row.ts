import {
  type Column,
  column,
  type RelationField,
  type RelationFields,
} from '../../dialect/resolve/relation.ts';
import type { Statement } from '../../dialect/resolve/statement.ts';
import { propertyColumns } from '../../dialect/resolve/tables/field_definitions.ts';
import { bind, sql, type Sql } from '../../dialect/sql.ts';
import { scalarType, type ScalarKind } from '../../dialect/types.ts';
import {
  MergedPerson,
  notExportable,
  readsColumn,
  RowPerson,
  RowColumns,
  type ModelRow,
  type RowColumn,
  type ColumnAccess,
} from './model_row.ts';

const columns: ReadonlyMap<string, RowColumn> = new Map<string, RowColumn>([
  ['uuid', { kind: 'uuid' }],
  ['timestamp', { kind: 'datetime' }],
  ['_inserted_at', { kind: 'datetime' }],
  ['created_at', { kind: 'datetime', nullable: true }],
  ['event', { kind: 'string' }],
  ['properties', { kind: 'json' }],
  ['distinct_id', { kind: 'string' }],
  ['elements_chain', { kind: 'string' }],
  ['person_properties', { kind: 'json', nullable: true }],
  ['person_id', { kind: 'uuid', nullable: true }],
  ['team_id', { kind: 'integer', hidden: true }],
  ['inserted_at', { kind: 'datetime', hidden: true }],
]);

/** Identities of columns that read the current person. */
const personPrefix = 'person.';

const personColumn = (name: string, fragment: Sql, kind: ScalarKind): Column => ({
  ...column(fragment, scalarType(kind, true)),
  identity: `${personPrefix}${name}`,
});

/**
 * One row of an export of events: an event with its person. In the query of an export that is the person whom the event
 * names, so that columns and conditions agree with the column person_id of the files. In its filters it is the merged
 * person, as in queries.
 */
export function createEventRow(
  statement: Statement,
  name: string,
  access: ColumnAccess,
  whose: 'own' | 'merged' = 'own',
): ModelRow {
  const row = new RowColumns(columns, access);
  const known = (column: string): Sql => row.column(column)?.sql ?? sql`null`;
  const { events, persons } = statement.project.schema;
  const joined = new RowPerson(statement, known('person_id'));
  const merged =
    whose === 'merged' && persons.columns.size > 0
      ? new MergedPerson(statement, { distinctId: known('distinct_id'), personId: known('person_id') })
      : null;
  const person = merged ?? joined;
  const personId = (): Column | undefined =>
    merged ? personColumn('id', merged.id, 'uuid') : row.column('person_id');

  /** The properties stored with the event, else the current ones of its person, as in queries. */
  const personProperties = (): Column => {
    const carried = events.columns.get('person_properties');
    if (whose === 'merged' && merged === null && carried !== undefined)
      return {
        ...column(known('person_properties'), scalarType('json', true)),
        identity: 'person_properties',
      };
    const current = person.column('properties');
    if (carried === undefined) return personColumn('properties', current, 'json');
    const own = known('person_properties');
    const either =
      carried === persons.columns.get('properties')
        ? sql`coalesce(${own}, ${current})`
        : sql`coalesce(${own}::jsonb, ${current}::jsonb)`;
    return personColumn('properties', either, 'json');
  };
  const personNames = () => ['id', 'properties', 'created_at'];
  const fields: RelationFields = {
    names: personNames,
    star: personNames,
    field: (requested) => {
      if (requested === 'id') return personId();
      if (requested === 'properties') return personProperties();
      if (requested === 'created_at') return personColumn(requested, person.column('created_at'), 'datetime');
      return undefined;
    },
  };
  const field = (requested: string): RelationField | undefined => {
    if (propertyColumns.has(requested))
      return {
        ...column(sql`(${known('properties')} ->> ${bind(requested, 'text')})`, scalarType('string', true)),
        identity: `property ${requested}`,
      };
    if (requested === 'person' || requested === 'poe') return { kind: 'nested', fields: fields };
    if (requested === 'session')
      return notExportable(
        'The field session cannot be exported, because a session changes while its events arrive.',
      );
    if (requested === 'pdi') return notExportable('The field pdi cannot be exported. Use person instead.');
    if (/^group_[0-4]$/.test(requested))
      return notExportable(
        `The field ${requested} cannot be exported, because a group changes after its events. Its key is $${requested}.`,
      );
    return requested === 'person_id' ? personId() : row.column(requested);
  };
  return {
    name,
    field: field,
    names: () => [...row.names, ...propertyColumns, 'person'],
    star: () => row.selectable,
    from: () => sql``,
    wholeColumn: row.wholeColumn,
    // If events do not store person properties, they are read from the person.
    readsPerson: (value) =>
      readsColumn(
        value,
        (identity) =>
          identity.startsWith(personPrefix) ||
          (identity === 'person_properties' && !events.columns.has('person_properties')),
      ),
    joins: () => joined.joins(),
    personAlias: () => joined.alias(),
  };
}
