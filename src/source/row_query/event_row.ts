import { column, type RelationField, type RelationFields } from '../../dialect/resolve/relation.ts';
import type { Statement } from '../../dialect/resolve/statement.ts';
import { propertyColumns } from '../../dialect/resolve/tables/property_columns.ts';
import { bind, sql, type Sql } from '../../dialect/sql.ts';
import { scalar } from '../../dialect/types.ts';
import {
  notExported,
  PersonOfRow,
  RowColumns,
  type ModelRow,
  type RowColumn,
  type RowPlace,
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

/** An event, with its person. */
export function createEventRow(statement: Statement, name: string, place: RowPlace): ModelRow {
  const row = new RowColumns(columns, place);
  const known = (column: string): Sql => row.column(column)?.sql ?? sql`null`;
  const person = new PersonOfRow(statement, known('person_id'));

  /** Those that the event carries, where it does, else the person's as they are now: as queries read them. */
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
  const members: RelationFields = {
    names: personNames,
    star: personNames,
    field: (wanted) => {
      if (wanted === 'id') return row.column('person_id');
      if (wanted === 'properties') return column(personProperties(), scalar('json', true));
      if (wanted === 'created_at') return column(person.column('created_at'), scalar('datetime', true));
      return undefined;
    },
  };
  const member = (wanted: string): RelationField | undefined => {
    if (propertyColumns.has(wanted))
      return column(sql`(${known('properties')} ->> ${bind(wanted, 'text')})`, scalar('string', true));
    if (wanted === 'person' || wanted === 'poe') return { kind: 'nested', fields: members };
    if (wanted === 'session')
      return notExported('The field session is not exported: a session changes while its events arrive.');
    if (wanted === 'pdi') return notExported('The field pdi is not exported; read person.');
    if (/^group_[0-4]$/.test(wanted))
      return notExported(
        `The field ${wanted} is not exported: a group changes after its events. Its key is $${wanted}.`,
      );
    return row.column(wanted);
  };
  return {
    name,
    field: member,
    names: () => [...row.names, ...propertyColumns, 'person'],
    star: () => row.shown,
    from: () => sql``,
    plainColumn: row.plainColumn,
    // Of events that do not carry their person every statement reads it in place.
    readsPerson: (expression) =>
      person.isIn(expression) ||
      (!statement.project.schema.events.columns.has('person_properties') &&
        expression.key.includes(place.sql('person_properties'))),
    joins: () => person.joins(),
  };
}
