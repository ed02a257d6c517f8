import type { Model } from '../../domain/batch_export.ts';
import type { ExportedColumn } from '../columns.ts';
import { compileRowQuery, type RowPlaces } from './compile_row_query.ts';
import type { RowQuery } from './row_query.ts';
import { createSettingsSql } from './settings_sql.ts';

/** A stored query that cannot be used any more; the message says why. No retry cures it. */
export class RowQueryFailed extends Error {
  override readonly name = 'RowQueryFailed';
}

/** An export's query as texts of a statement. */
export interface RowQueryStatement {
  readonly columns: readonly ExportedColumn[];
  /** The select list, in the order of the columns. */
  readonly selected: string;
  readonly joins: string;
  /** Each condition after an `and`; empty for every row. */
  readonly condition: string;
  readonly conditionJoins: string;
  /** The settings in which the statement finds the query's values, which are never part of its text. */
  readonly settings: Readonly<Record<string, string>>;
}

/** The columns that a page is ordered by and that no file has; they come first. */
export const sortKeyColumns = (id: string, type: 'uuid' | 'text'): readonly ExportedColumn[] => [
  { name: '_inserted_at', type: 'timestamp', hidden: true },
  { name: id, type, hidden: true },
];

/** Compiles a stored query for a statement that COPY runs. @throws RowQueryFailed */
export function rowQueryStatement(
  model: Model,
  query: RowQuery,
  teamId: number,
  places: RowPlaces,
): RowQueryStatement {
  const { fields, joins, condition, conditionJoins } = compile(model, query, teamId, places);
  const columns = fields.map(({ name, type }) => ({ name, type }));
  const stored = query.fields.map(({ name, type }) => ({ name, type }));
  if (JSON.stringify(columns) !== JSON.stringify(stored))
    throw new RowQueryFailed(
      'This version of exportd makes other columns of the query of the batch export than the one that stored it; save the query again.',
    );
  const { text, settings } = createSettingsSql();
  return {
    columns,
    selected: fields.map((field) => text(field.sql)).join(', '),
    joins: joins.map(text).join(''),
    condition: condition === null ? '' : ` and ${text(condition)}`,
    conditionJoins: conditionJoins.map(text).join(''),
    settings,
  };
}

function compile(model: Model, query: RowQuery, teamId: number, places: RowPlaces) {
  try {
    return compileRowQuery(model, query, teamId, places);
  } catch (error) {
    if (!Error.isError(error) || error.name !== 'DialectError') throw error;
    throw new RowQueryFailed(`The query of the batch export does not fit its ${model}: ${error.message}`);
  }
}
