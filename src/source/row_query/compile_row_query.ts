import type { Expression, Select } from '../../dialect/ast.ts';
import { condition } from '../../dialect/compile/coerce.ts';
import { collectAliases, type Output, selectItems } from '../../dialect/compile/select_items.ts';
import { compiler, topScope } from '../../dialect/compile/query_compiler.ts';
import { parseQuery } from '../../dialect/parser/parse.ts';
import { printExpression, printQuery } from '../../dialect/print/print.ts';
import { resolvePlaceholders } from '../../dialect/resolve/placeholders.ts';
import { Grouping, type Scope } from '../../dialect/resolve/scope.ts';
import { Statement } from '../../dialect/resolve/statement.ts';
import type { Value } from '../../dialect/resolve/value.ts';
import type { SourceRelation } from '../../dialect/schema.ts';
import { QueryText } from '../../dialect/query_text.ts';
import { joinSql, sql, type Sql } from '../../dialect/sql.ts';
import type { Model } from '../../domain/batch_export.ts';
import type { ColumnType } from '../columns.ts';
import { createEventRow } from './event_row.ts';
import { exportedValue } from './exported_values.ts';
import type { ModelRow, RowPlace } from './model_row.ts';
import { createPersonRow } from './person_row.ts';
import { requireRowSelect } from './refusals.ts';
import type { RowQuery } from './row_query.ts';

/** A column of an export's query. */
export interface CompiledField {
  readonly name: string;
  readonly type: ColumnType;
  readonly sql: Sql;
  /** As canonical text of the dialect. */
  readonly expression: string;
  /** The model's column that it is, as it is; null for anything else. */
  readonly column: string | null;
  /** Whether it is of the row's person as it is when the row is read, so that another reading may give another value. */
  readonly readsPerson: boolean;
}

/** An export's query as pieces of a statement over the rows of its model. */
export interface CompiledRowQuery {
  readonly fields: readonly CompiledField[];
  /** What stands behind the relation that `fields` are computed from. */
  readonly joins: readonly Sql[];
  /** Null for every row. */
  readonly condition: Sql | null;
  /** What stands behind the relation that `condition` looks at. */
  readonly conditionJoins: readonly Sql[];
  readonly printed: string;
}

/** Where a statement finds what a query speaks of. */
export interface RowPlaces {
  readonly selected: RowPlace;
  readonly filtered: RowPlace;
  readonly events: SourceRelation;
  readonly persons: SourceRelation;
}

/** The most columns that an export may have. */
const mostFields = 500;
const longestName = 200;

/**
 * Compiles an export's query. Its expressions are those of the dialect, with all the dialect's checks; properties are
 * text, since what a project says of them may change from one interval to the next.
 * @throws DialectError
 */
export function compileRowQuery(
  model: Model,
  {
    dialect_query,
    timezone,
    week_start_day,
  }: Pick<RowQuery, 'dialect_query' | 'timezone' | 'week_start_day'>,
  teamId: number,
  { selected, filtered, events, persons }: RowPlaces,
): CompiledRowQuery {
  const source = new QueryText(dialect_query);
  const parsed = parseQuery(dialect_query);
  requireRowSelect(parsed, model, source);
  const query = requireRowSelect(resolvePlaceholders(parsed, new Map(), source), model, source);
  const statement = new Statement(
    {
      teamId,
      timezone,
      weekStartDay: week_start_day,
      // Nothing that asks for it gets this far.
      now: '1970-01-01T00:00:00Z',
      schema: {
        events,
        persons,
        personDistinctIds: persons,
        sessionReplayEvents: null,
        groups: null,
        warehouse: new Map(),
        eventProperties: new Map(),
        personProperties: new Map(),
      },
    },
    source,
  );
  const rowAt = (place: RowPlace): ModelRow => {
    const name = query.from?.kind === 'table' ? (query.from.alias?.text ?? model) : model;
    return model === 'events' ? createEventRow(statement, name, place) : createPersonRow(name, place);
  };
  const row = rowAt(selected);
  const fields = fieldsOf(query, row, scopeOf(query, row, statement), statement);
  const filteredRow = rowAt(filtered);
  const whole = conditionOf(
    query,
    { ...scopeOf(query, filteredRow, statement), context: 'WHERE' },
    statement,
  );
  return {
    fields,
    joins: row.joins(),
    condition: whole,
    conditionJoins: filteredRow.joins(),
    printed: printQuery(query),
  };
}

function scopeOf(query: Select, row: ModelRow, statement: Statement): Scope {
  const scope = { ...topScope(statement), relations: [row] };
  return {
    ...scope,
    aliases: collectAliases(query, scope),
    grouping: new Grouping(statement.uniqueName('grouped')),
  };
}

function fieldsOf(query: Select, row: ModelRow, scope: Scope, statement: Statement): CompiledField[] {
  const outputs = selectItems(compiler, query, scope);
  if (outputs.length > mostFields)
    throw statement.error(`A batch export has at most ${mostFields} columns.`, query);
  const names = new Set<string>();
  return outputs.map((output) => {
    const { name, value, node } = output;
    refuseRows(value, statement);
    if (name === '' || name.length > longestName || name.includes('\0'))
      throw statement.error(
        `The name of a column has from 1 to ${longestName} characters.`,
        node,
        'Give it one with AS.',
      );
    // Many readers of files do not tell upper from lower case.
    if (names.has(name.toLowerCase()))
      throw statement.error(
        `Two columns are called ${name}.`,
        node,
        'Give one of them another name with AS.',
      );
    names.add(name.toLowerCase());
    const plain = row.plainColumn(value.sql);
    return {
      name,
      ...exportedValue(value, plain?.sql),
      expression: expressionText(output),
      column: plain?.name ?? null,
      readsPerson: row.readsPerson(value.sql),
    };
  });
}

/** @throws DialectError for what needs other rows than the one at hand. */
function refuseRows({ traits: facts }: Value, statement: Statement): void {
  const { aggregate, window } = facts;
  if (window)
    throw statement.error('A window function is not supported in the query of a batch export.', window);
  if (aggregate)
    throw statement.error(
      'An aggregate is not supported in the query of a batch export.',
      aggregate,
      'A batch export reads its rows one by one; it may choose columns and filter.',
    );
}

const expressionText = ({ node, name }: Output): string => {
  if (node.kind === 'star') return name;
  const expression = node as Expression;
  return printExpression(expression.kind === 'alias' ? expression.expression : expression);
};

function conditionOf({ prewhere, where }: Select, scope: Scope, statement: Statement): Sql | null {
  const conditions = [prewhere, where].flatMap((node) => {
    if (node === null) return [];
    const value = compiler.value(node, scope, 'filter');
    refuseRows(value, statement);
    return [sql`(${condition(value, node, statement)})`];
  });
  return conditions.length === 0 ? null : joinSql(conditions, ' and ');
}
