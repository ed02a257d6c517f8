import {
  type Column,
  column,
  type RelationField,
  type RelationFields,
} from '../../dialect/resolve/relation.ts';
import type { Statement } from '../../dialect/resolve/statement.ts';
import { propertyColumns } from '../../dialect/resolve/tables/property_columns.ts';
import { bind, sql, type Sql } from '../../dialect/sql.ts';
import { scalar, type ScalarKind } from '../../dialect/types.ts';
import {
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
  ...column(fragment, scalar(kind, true)),
  identity: `${personPrefix}${name}`,
});

/** One row of an export of events: an event with its person. */
export function createEventRow(statement: Statement, name: string, access: ColumnAccess): ModelRow {
  const row = new RowColumns(columns, access);
  const known = (column: string): Sql => row.column(column)?.sql ?? sql`null`;
  const person = new RowPerson(statement, known('person_id'));

  /** The properties stored with the event, else the current ones of its person, as in queries. */
  const personProperties = (): Sql => {
    const { events, persons } = statement.project.schema;
    const carried = events.columns.get('person_properties');
    const current = person.column('properties');
    if (carried === undefined) return current;
    const own = known('person_properties');
    return carried === persons.columns.get('properties')
      ? sql`coalesce(${own}, ${current})`
      : sql`coalesce(${own}::jsonb, ${current}::jsonb)`;
  };
  const personNames = () => ['id', 'properties', 'created_at'];
  const fields: RelationFields = {
    names: personNames,
    star: personNames,
    field: (requested) => {
      if (requested === 'id') return row.column('person_id');
      if (requested === 'properties') return personColumn(requested, personProperties(), 'json');
      if (requested === 'created_at') return personColumn(requested, person.column('created_at'), 'datetime');
      return undefined;
    },
  };
  const field = (requested: string): RelationField | undefined => {
    if (propertyColumns.has(requested))
      return {
        ...column(sql`(${known('properties')} ->> ${bind(requested, 'text')})`, scalar('string', true)),
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
    return row.column(requested);
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
          (identity === 'person_properties' &&
            !statement.project.schema.events.columns.has('person_properties')),
      ),
    joins: () => person.joins(),
    personAlias: () => person.alias(),
  };
}
