import type { Expression } from '../dialect/ast.ts';
import { buildExpression } from '../dialect/ast_builders.ts';
import { DialectError, QueryText } from '../dialect/dialect_error.ts';
import type { SourceRelation } from '../dialect/schema.ts';
import type { Model } from '../domain/batch_export.ts';
import { filterCondition } from '../filters/condition.ts';
import { FilterError } from '../filters/operand.ts';
import { propertyFilterListSchema, type PropertyFilter } from '../filters/schema.ts';
import { compileConditions, rowByRowProblem, rowScope, rowStatement } from './row_query/compile_row_query.ts';
import { type ColumnAccess, createEventRow, createPersonRow } from './row_query/model_row.ts';
import { createSettingsSql } from './row_query/read_row_query.ts';
import type { RowSelection } from './row_selection.ts';

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
export interface SelectionConditions {
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

const anyRelation: SourceRelation = { relation: 'any', columns: new Map() };

/** Checks filters before they are stored. @throws FilterError with the path of the invalid field, from `filters` */
export function checkFilters(filters: readonly PropertyFilter[], model: Model): void {
  const issue = propertyFilterListSchema.safeParse(filters).error?.issues[0];
  if (issue) throw new FilterError('invalid_input', issue.message, ['filters', ...issue.path].join('__'));
  compileSelection(
    { include_events: [], exclude_events: [], filters },
    {
      ...{ model, team_id: 0, access: { sql: (name) => name, jsonType: () => 'jsonb' } },
      ...{ events: anyRelation, persons: anyRelation, personDistinctIds: anyRelation },
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
      ? [compile(names('event in {names}', include_events), 'include_events', '', rows)]
      : []),
    ...(exclude_events.length > 0
      ? [compile(names('event not in {names}', exclude_events), 'exclude_events', '', rows)]
      : []),
    ...filters.flatMap((filter, index) => {
      const path = `filters__${index}`;
      const condition = filterCondition(filter, { scope: rows.model }, path);
      if (condition !== null) {
        const isExpression = filter.type === 'hogql';
        const attr = `${path}__${isExpression ? 'key' : 'value'}`;
        return [compile(condition, attr, isExpression ? String(filter.key) : '', rows)];
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
function compile(
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
