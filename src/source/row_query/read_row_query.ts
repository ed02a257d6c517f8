import { DialectError, QueryText } from '../../dialect/dialect_error.ts';
import { renderWith, type Sql } from '../../dialect/sql.ts';
import type { Model } from '../../domain/batch_export.ts';
import type { ExportedColumn, RowQuery } from '../row_selection.ts';
import { compileRowQuery, type RowSources } from './compile_row_query.ts';
import type { ColumnAccess } from './model_row.ts';

/**
 * Renders SQL fragments of one statement. Their values become settings of its transaction, because COPY does not
 * accept parameters.
 */
interface SettingsSql {
  /** Renders a fragment. Equal values share a setting; each is evaluated once per statement. */
  readonly text: (fragment: Sql) => string;
  /** The settings that the rendered fragments need. */
  readonly settings: Readonly<Record<string, string>>;
}

/** @param kind of what the settings hold the values of, part of their names */
export function createSettingsSql(kind: 'query' | 'selection' = 'query'): SettingsSql {
  const settings: Record<string, string> = {};
  const names = new Map<string, string>();
  const nameOf = (value: string): string => {
    const known = names.get(value);
    if (known !== undefined) return known;
    const name = `exportd.${kind}_${names.size}`;
    names.set(value, name);
    settings[name] = value;
    return name;
  };
  return {
    settings,
    text: (fragment) =>
      // The outer cast makes it an array value instead of the rows of a subquery.
      renderWith(fragment, ({ value, type }) => `(select current_setting('${nameOf(value)}'))::${type}`),
  };
}

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

/** The types do not depend on how columns are accessed. */
const anyAccess: ColumnAccess = { sql: (name) => name, jsonType: () => 'jsonb' };
const anyRelation = { relation: 'any', columns: new Map<string, string>() };

/** Checks the query of an export and determines its columns, without reading the source. @throws DialectError */
export function readRowQuery(
  model: Model,
  given: Pick<RowQuery, 'dialect_query' | 'timezone' | 'week_start_day'>,
): RowQuery {
  const { fields, condition, printed } = compileRowQuery(model, given, 0, {
    selected: anyAccess,
    filtered: anyAccess,
    events: anyRelation,
    persons: anyRelation,
  });
  const { text, settings } = createSettingsSql();
  for (const fragment of [...fields.map((field) => field.sql), ...(condition === null ? [] : [condition])])
    text(fragment);
  if (Object.values(settings).some((value) => value.includes('\0')))
    throw new DialectError(
      new QueryText(given.dialect_query),
      'A string cannot contain the character U+0000.',
      {
        start: 0,
        end: given.dialect_query.length,
      },
    );
  const { dialect_query, timezone, week_start_day } = given;
  return {
    dialect_query,
    timezone,
    week_start_day,
    fields: fields.map(({ name, type, expression }) => ({ name, type, expression })),
    printed,
  };
}
