import { sql } from '../../dialect/sql.ts';
import { notExported, RowColumns, type ModelRow, type RowColumn, type RowPlace } from './model_row.ts';

const columns: ReadonlyMap<string, RowColumn> = new Map<string, RowColumn>([
  ['team_id', { kind: 'integer' }],
  ['distinct_id', { kind: 'string' }],
  ['person_id', { kind: 'uuid' }],
  ['properties', { kind: 'json', nullable: true }],
  ['person_distinct_id_version', { kind: 'integer' }],
  ['person_version', { kind: 'integer', nullable: true }],
  ['created_at', { kind: 'datetime', nullable: true }],
  ['_inserted_at', { kind: 'datetime' }],
  ['is_deleted', { kind: 'boolean' }],
]);

/** Names that queries have for the same. */
const otherNames: Readonly<Record<string, string>> = { id: 'person_id', version: 'person_version' };

/** A distinct id with its person: one row of an export of persons. */
export function createPersonRow(name: string, place: RowPlace): ModelRow {
  const row = new RowColumns(columns, place);
  return {
    name,
    field: (wanted) => {
      if (wanted === 'pdi' || wanted === 'is_identified')
        return notExported(`The field ${wanted} is not exported; distinct_id is a column of each row.`);
      return row.column(otherNames[wanted] ?? wanted);
    },
    names: () => [...row.names, ...Object.keys(otherNames)],
    star: () => row.shown,
    from: () => sql``,
    plainColumn: row.plainColumn,
    readsPerson: () => false,
    joins: () => [],
  };
}
