import { sql } from '../../dialect/sql.ts';
import { notExportable, RowColumns, type ModelRow, type RowColumn, type ColumnAccess } from './model_row.ts';

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

/** Aliases of columns, as in queries. */
const columnAliases: Readonly<Record<string, string>> = { id: 'person_id', version: 'person_version' };

/** One row of an export of persons: a distinct id with its person. */
export function createPersonRow(name: string, access: ColumnAccess): ModelRow {
  const row = new RowColumns(columns, access);
  return {
    name,
    field: (requested) => {
      if (requested === 'pdi' || requested === 'is_identified')
        return notExportable(
          `The field ${requested} cannot be exported. Each row has the column distinct_id.`,
        );
      return row.column(columnAliases[requested] ?? requested);
    },
    names: () => [...row.names, ...Object.keys(columnAliases)],
    star: () => row.selectable,
    from: () => sql``,
    wholeColumn: row.wholeColumn,
    readsPerson: () => false,
    joins: () => [],
    personAlias: () => null,
  };
}
