import type { Expression } from '@exportd/dialect/ast';
import { buildExpression } from '@exportd/dialect/ast_builders';
import { DialectError, QueryText } from '@exportd/dialect/query_text';
import type { SourceRelation } from '@exportd/dialect/schema';
import { renderWith, type Sql } from '@exportd/dialect/sql';
import type { Model } from '../../domain/batch_export.ts';
import { filterCondition } from '../../filters/condition.ts';
import { FilterError } from '../../filters/operand.ts';
import { type PropertyFilter, propertyFilterListSchema } from '../../filters/schema.ts';
import type { ExportedColumn, RowQuery, RowSelection } from '../row_selection.ts';
import {
  compileConditions,
  compileRowQuery,
  rowByRowProblem,
  rowScope,
  type RowSources,
  rowStatement,
} from './compile_row_query.ts';
import { type ColumnAccess, createEventRow, createPersonRow } from './model_row.ts';

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
    if (!(error instanceof Error) || error.name !== 'DialectError') throw error;
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

// The filters of an export mean what they mean in a query: both sides compile the same conditions of the dialect
// (src/filters). What an export adds is in this file: it reads rows one by one, without a clock, and exporting an interval
// again has to select the same rows. So properties are strings whatever types a project declares, dates are in UTC whatever
// zone it has, and a filter that a query would ignore because it is incomplete is an error.

/** How a statement reads the rows that it selects from. */
export interface SelectableRows {
  readonly model: Model;
  readonly team_id: number;
  readonly access: ColumnAccess;
  readonly events: SourceRelation;
  /** Without columns if the source has no persons. Then only the properties that events store are filtered. */
  readonly persons: SourceRelation;
  readonly personDistinctIds: SourceRelation;
}

/** A selection as SQL. */
interface SelectionConditions {
  /** Conditions, each preceded by `and`; empty selects all rows. */
  readonly sql: string;
  /** The settings that hold the values. The SQL text never contains them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Whether they depend on the current state of the row's person, and may differ when the row is read again. */
  readonly readsPerson: boolean;
}

/** A stored selection cannot be compiled: its model lacks what it uses, or an older version accepted it. Permanent. */
export class UnsupportedSelection extends Error {
  override readonly name = 'UnsupportedSelection';
}

/** Builds the conditions of a stored selection, apart from those of its query. @throws UnsupportedSelection */
export function selectionConditions(selection: RowSelection, rows: SelectableRows): SelectionConditions {
  try {
    return compileSelection(selection, rows);
  } catch (error) {
    if (!(error instanceof FilterError)) throw error;
    throw new UnsupportedSelection(
      `The destination's field '${error.attr.replaceAll('__', '.')}' cannot be used for ${rows.model}: ${error.message}`,
    );
  }
}

const anyRowSource: SourceRelation = { relation: 'any', columns: new Map() };

/** Checks filters before they are stored. @throws FilterError with the path of the invalid field, from `filters` */
export function checkFilters(filters: readonly PropertyFilter[], model: Model): void {
  const issue = propertyFilterListSchema.safeParse(filters).error?.issues[0];
  if (issue) throw new FilterError('invalid_input', issue.message, ['filters', ...issue.path].join('__'));
  compileSelection(
    { include_events: [], exclude_events: [], filters },
    {
      model,
      team_id: 0,
      access: { sql: (name) => name, jsonType: () => 'jsonb' },
      events: anyRowSource,
      persons: anyRowSource,
      personDistinctIds: anyRowSource,
    },
  );
}

/** @throws FilterError */
function compileSelection(
  { include_events, exclude_events, filters }: RowSelection,
  rows: SelectableRows,
): SelectionConditions {
  const { text, settings } = createSettingsSql('selection');
  const names = (template: string, value: readonly string[]): Expression =>
    buildExpression(template, { names: { value } });
  const conditions = [
    ...(include_events.length > 0
      ? [compileCondition(names('event in {names}', include_events), 'include_events', '', rows)]
      : []),
    ...(exclude_events.length > 0
      ? [compileCondition(names('event not in {names}', exclude_events), 'exclude_events', '', rows)]
      : []),
    ...filters.flatMap((filter, index) => {
      const path = `filters__${index}`;
      const condition = filterCondition(filter, { scope: rows.model }, path);
      if (condition !== null) {
        const isExpression = filter.type === 'hogql';
        const attr = `${path}__${isExpression ? 'key' : 'value'}`;
        return [compileCondition(condition, attr, isExpression ? String(filter.key) : '', rows)];
      }
      if (Array.isArray(filter.value) && filter.value.length === 0) return [];
      throw new FilterError('invalid_input', incomplete, `${path}__value`);
    }),
  ];
  return {
    sql: conditions.map(({ sql }) => ` and ${text(sql)}`).join(''),
    settings,
    readsPerson: conditions.some(({ readsPerson }) => readsPerson),
  };
}

const incomplete =
  "A filter needs a 'value' that is not null. The operator is_not_set finds rows without a property.";

/** Compiles a condition on one row. @param text the text that errors point into. @throws FilterError */
function compileCondition(
  condition: Expression,
  attr: string,
  text: string,
  { model, team_id, access, events, persons, personDistinctIds }: SelectableRows,
): ReturnType<typeof compileConditions>[number] & { readonly readsPerson: boolean } {
  const problem = rowByRowProblem(condition);
  if (problem)
    throw new FilterError(
      'invalid_input',
      `${problem.what} in a filter of a batch export. ${problem.advice}`,
      attr,
    );
  const statement = rowStatement(
    { team_id, timezone: 'UTC', week_start_day: 'sunday' },
    { events, persons, personDistinctIds },
    new QueryText(text),
  );
  const row =
    model === 'events' ? createEventRow(statement, model, access, 'merged') : createPersonRow(model, access);
  try {
    const [compiled] = compileConditions([condition], rowScope(row, statement), statement);
    if (!compiled) throw new Error('A condition compiled to nothing.');
    return { ...compiled, readsPerson: row.readsPerson(compiled.value) };
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw new FilterError('dialect_error', text === '' ? error.summary : error.message, attr, {
      cause: error,
    });
  }
}
