import type { Model } from '../../domain/batch_export.ts';
import type { ExportedColumn } from '../columns.ts';
import { compileRowQuery, type RowSources } from './compile_row_query.ts';
import type { RowQuery } from './row_query.ts';
import { createSettingsSql } from './settings_sql.ts';

/** A stored query can no longer be used. The message contains the reason. Permanent. */
export class RowQueryFailed extends Error {
  override readonly name = 'RowQueryFailed';
}

/** An export's query as SQL text. */
export interface RowQueryStatement {
  readonly columns: readonly ExportedColumn[];
  /** The select list in column order. */
  readonly selected: string;
  readonly joins: string;
  /** Conditions, each preceded by `and`; empty selects all rows. */
  readonly condition: string;
  readonly conditionJoins: string;
  /** Whether `condition` depends on the current state of the row's person. */
  readonly conditionReadsPerson: boolean;
  /** The settings that hold the values of the query. The SQL text never contains them. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Hidden columns that pages are ordered by. They precede the selected columns. */
export const sortKeyColumns = (id: string, type: 'uuid' | 'text'): readonly ExportedColumn[] => [
  { name: '_inserted_at', type: 'timestamp', hidden: true },
  { name: id, type, hidden: true },
];

/** Compiles a stored query for COPY. @throws RowQueryFailed */
export function rowQueryStatement(
  model: Model,
  query: RowQuery,
  teamId: number,
  sources: RowSources,
): RowQueryStatement {
  const { fields, joins, condition, conditionJoins, conditionReadsPerson } = compile(
    model,
    query,
    teamId,
    sources,
  );
  const columns = fields.map(({ name, type }) => ({ name, type }));
  const stored = query.fields.map(({ name, type }) => ({ name, type }));
  if (JSON.stringify(columns) !== JSON.stringify(stored))
    throw new RowQueryFailed(
      'This version of exportd compiles the query of the batch export to other columns than the version that stored it. Save the query again.',
    );
  const { text, settings } = createSettingsSql();
  return {
    columns,
    selected: fields.map((field) => text(field.sql)).join(', '),
    joins: joins.map(text).join(''),
    condition: condition === null ? '' : ` and ${text(condition)}`,
    conditionJoins: conditionJoins.map(text).join(''),
    conditionReadsPerson,
    settings,
  };
}

function compile(model: Model, query: RowQuery, teamId: number, sources: RowSources) {
  try {
    return compileRowQuery(model, query, teamId, sources);
  } catch (error) {
    if (!Error.isError(error) || error.name !== 'DialectError') throw error;
    throw new RowQueryFailed(`The query of the batch export cannot read ${model}: ${error.message}`);
  }
}
