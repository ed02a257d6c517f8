import { bounds } from '../../config/bounds.ts';
import {
  type Call,
  type Expression,
  findNodes,
  type From,
  type Node,
  type Query,
  type Select,
} from '@exportd/dialect/ast';
import { collectAliases, type Output, selectItems } from '@exportd/dialect/compile/clauses/select_items';
import { compiler, topScope } from '@exportd/dialect/compile/compile_query';
import { postgresType, toCondition } from '@exportd/dialect/compile/expressions/coerce';
import { DialectError, QueryText } from '@exportd/dialect/query_text';
import { defaultLimits } from '@exportd/dialect/parser/cursor';
import { parseQuery } from '@exportd/dialect/parser/queries';
import { printExpression, printQuery } from '@exportd/dialect/print';
import { resolvePlaceholders } from '@exportd/dialect/resolve/placeholders';
import { Grouping, type Scope } from '@exportd/dialect/resolve/scope';
import { Statement } from '@exportd/dialect/resolve/statement';
import type { Value } from '@exportd/dialect/resolve/value';
import type { Schema, SourceRelation } from '@exportd/dialect/schema';
import { joinSql, sql, type Sql } from '@exportd/dialect/sql';
import type { Kind } from '@exportd/dialect/types';
import type { Model } from '../../domain/batch_export.ts';
import { hasControlCharacters } from '../../domain/control_characters.ts';
import type { ColumnType, RowQuery } from '../row_selection.ts';
import { type ColumnAccess, createEventRow, createPersonRow, type ModelRow } from './model_row.ts';

/** Column types of files by the types of the dialect. Decimals are exported as text to keep every digit. */
const columnTypes: Readonly<Record<Kind, ColumnType>> = {
  string: 'text',
  integer: 'bigint',
  float: 'double',
  decimal: 'text',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamp',
  uuid: 'uuid',
  interval: 'text',
  json: 'json',
  null: 'text',
  array: 'json',
  tuple: 'json',
  map: 'json',
};

/**
 * An exported value, cast to the type that an encoder expects.
 * @param whole the column, if it is selected unchanged; then JSON is not cast
 */
function exportedValue(
  { sql: fragment, type }: Value,
  whole: Sql | undefined,
): { readonly type: ColumnType; readonly sql: Sql } {
  const exported = columnTypes[type.kind];
  if (exported === 'json' && whole !== undefined) return { type: exported, sql: whole };
  return {
    type: exported,
    sql: exported === 'text' ? sql`(${fragment})::text` : sql`(${fragment})::${postgresType(type)}`,
  };
}

const rowByRowHint =
  'A batch export reads rows one by one. Its query can only select columns and filter rows.';

const clockHint = 'Exporting an interval again must return the same rows. Filter by columns instead.';

/** Functions whose result depends on the clock. */
const clockFunctions: ReadonlySet<string> = new Set(['now', 'today', 'yesterday', 'current_date']);

const isCall = (node: Node): node is Call => node.kind === 'call';
const isSubquery = (node: Node): node is Extract<Expression, { kind: 'subquery' }> =>
  node.kind === 'subquery';

/**
 * Returns the SELECT of an export's query, which may only select columns of its model and filter rows.
 * @throws DialectError for an unsupported clause, at its position
 */
function requireRowSelect(query: Query, model: Model, source: QueryText): Select {
  const reject = (what: string, node: Node, advice: string = rowByRowHint): never => {
    throw new DialectError(source, `${what} in the query of a batch export.`, {
      start: node.start,
      end: node.end,
      suggestion: advice,
    });
  };
  if (query.kind === 'set_operation')
    return reject(`${query.operator.toUpperCase().replaceAll('_', ' ')} is not supported`, query);
  const { groupBy, arrayJoin, having, qualify, limit, limitBy } = query;
  const [cte, order, window] = [query.ctes[0], query.orderBy[0], query.windows[0]];
  if (cte) reject('WITH is not supported', cte);
  if (query.distinct) reject('DISTINCT is not supported', query);
  requireTable(query.from, model, query, reject);
  if (arrayJoin) reject('ARRAY JOIN is not supported', arrayJoin);
  if (groupBy) reject('GROUP BY is not supported', groupBy);
  if (having) reject('HAVING is not supported', having);
  if (qualify) reject('QUALIFY is not supported', qualify);
  if (window) reject('WINDOW is not supported', window);
  if (order) reject('ORDER BY is not supported', order, 'Rows are exported in the order of insertion.');
  if (limitBy) reject('LIMIT BY is not supported', limitBy);
  if (limit)
    reject('LIMIT is not supported', limit, 'Every row of an interval is exported; filter with WHERE.');
  const problem = rowByRowProblem(query);
  if (problem) reject(problem.what, problem.at, problem.advice);
  return query;
}

/** What an expression in a query or filter of an export cannot contain, and what to do instead. */
interface RowByRowProblem {
  readonly what: string;
  readonly at: Node;
  readonly advice: string;
}

/** The first part that needs other rows or a clock; undefined if there is none. */
export function rowByRowProblem(node: Node): RowByRowProblem | undefined {
  const found = findNodes(node, (one) => isCall(one) || isSubquery(one));
  const subquery = found.find(isSubquery);
  if (subquery) return { what: 'A subquery is not supported', at: subquery, advice: rowByRowHint };
  for (const call of found.filter(isCall)) {
    const name = call.name.text;
    const what = `${name}() is not supported`;
    if (clockFunctions.has(name.toLowerCase())) return { what, at: call, advice: clockHint };
    if (name === 'arrayJoin') return { what, at: call, advice: rowByRowHint };
  }
  return undefined;
}

function requireTable(
  from: From | null,
  model: Model,
  query: Select,
  reject: (what: string, node: Node, advice?: string) => never,
): void {
  const only = `Write FROM ${model}.`;
  if (from === null) return reject('FROM is missing', query, only);
  switch (from.kind) {
    case 'join':
      return reject(
        'JOIN is not supported',
        from,
        model === 'events' ? 'Read the properties of the person as person.properties.….' : rowByRowHint,
      );
    case 'derived_table':
      return reject('A subquery is not supported', from, only);
    case 'table_function':
      return reject('A table function is not supported', from, only);
    case 'table': {
      const name = from.path.map(({ text }) => text).join('.');
      if (name !== model)
        reject(`The table \`${name}\` is not available`, from, `This batch export reads ${model}.`);
      if (from.sample) reject('SAMPLE is not supported', from.sample);
    }
  }
}

/** A column that an export's query selects. */
export interface CompiledField {
  readonly name: string;
  readonly type: ColumnType;
  readonly sql: Sql;
  /** The expression as canonical text of the dialect. */
  readonly expression: string;
  /** The name of the model's column that is selected unchanged; null for any other expression. */
  readonly column: string | null;
  /** Whether the value comes from the current state of the row's person, and may differ when the row is read again. */
  readonly readsPerson: boolean;
}

/** An export's query as fragments of a statement over the rows of its model. */
interface CompiledRowQuery {
  readonly fields: readonly CompiledField[];
  /** Joins that `fields` need. */
  readonly joins: readonly Sql[];
  /** Null selects all rows. */
  readonly condition: Sql | null;
  /** Joins that `condition` needs. */
  readonly conditionJoins: readonly Sql[];
  /** The name under which these joins provide the row's current person; null if they do not. */
  readonly conditionPerson: Sql | null;
  /** Whether `condition` depends on the current state of the row's person, and may differ when the row is read again. */
  readonly conditionReadsPerson: boolean;
  readonly printed: string;
}

/** How a statement accesses the columns and relations that a query uses. */
export interface RowSources {
  readonly selected: ColumnAccess;
  readonly filtered: ColumnAccess;
  readonly events: SourceRelation;
  readonly persons: SourceRelation;
}

/** Compiling more keeps all other requests of a server waiting. */
const limits = { ...defaultLimits, nodes: bounds.queryNodes.max };
/** Maximum number of columns of an export. */
const maxFields = bounds.queryColumns.max;
const maxNameLength = 200;

/**
 * Compiles an export's query with the expressions and checks of the dialect. Properties are always strings, because a
 * project may change their types from one interval to the next.
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
  { selected, filtered, events, persons }: RowSources,
): CompiledRowQuery {
  const source = new QueryText(dialect_query);
  const parsed = parseQuery(dialect_query, limits);
  const given = requireRowSelect(parsed, model, source);
  const resolved = resolvePlaceholders(parsed, new Map(), source);
  const query = resolved === parsed ? given : requireRowSelect(resolved, model, source);
  const statement = rowStatement(
    { team_id: teamId, timezone, week_start_day },
    { events, persons, personDistinctIds: persons },
    source,
  );
  const rowAt = (access: ColumnAccess): ModelRow => {
    const name = query.from?.kind === 'table' ? (query.from.alias?.text ?? model) : model;
    return model === 'events' ? createEventRow(statement, name, access) : createPersonRow(name, access);
  };
  const row = rowAt(selected);
  const scopeOf = (relation: ModelRow): Scope => {
    const scope = rowScope(relation, statement);
    return { ...scope, aliases: collectAliases(query, scope) };
  };
  const fields = fieldsOf(query, row, { ...scopeOf(row), context: 'select' }, statement);
  const filteredRow = rowAt(filtered);
  const conditions = compileConditions([query.prewhere, query.where], scopeOf(filteredRow), statement);
  return {
    fields,
    joins: row.joins(),
    condition: conditions.length === 0 ? null : joinSql(conditions.map(sqlOf), ' and '),
    conditionJoins: filteredRow.joins(),
    conditionPerson: filteredRow.personAlias(),
    conditionReadsPerson: conditions.some(({ value }) => filteredRow.readsPerson(value)),
    printed: printQuery(query),
  };
}

/** A statement over the rows of an export. Properties are strings, whatever types the project declares. */
export const rowStatement = (
  {
    team_id,
    timezone,
    week_start_day,
  }: Pick<RowQuery, 'timezone' | 'week_start_day'> & { readonly team_id: number },
  relations: Pick<Schema, 'events' | 'persons' | 'personDistinctIds'>,
  source: QueryText,
): Statement =>
  new Statement(
    {
      teamId: team_id,
      timezone,
      weekStartDay: week_start_day,
      // Never used: functions that read the clock have been rejected.
      now: '1970-01-01T00:00:00Z',
      schema: {
        ...relations,
        sessionReplayEvents: null,
        groups: null,
        cohortPeople: null,
        warehouse: new Map(),
        properties: new Map(),
      },
    },
    source,
  );

/** The scope of conditions on one row. */
export const rowScope = (row: ModelRow, statement: Statement): Scope => ({
  ...topScope(statement),
  relations: [row],
  grouping: new Grouping(statement.uniqueName('grouped')),
  context: 'WHERE',
});

function fieldsOf(query: Select, row: ModelRow, scope: Scope, statement: Statement): CompiledField[] {
  const outputs = selectItems(compiler, query, scope);
  if (outputs.length > maxFields)
    throw statement.error(`The query of a batch export can have at most ${maxFields} columns.`, query);
  const names = new Set<string>();
  return outputs.map((output) => {
    const { name, value, node } = output;
    rejectOtherRows(value, statement);
    if (name === '' || name.length > maxNameLength)
      throw statement.error(
        `A column name must have 1 to ${maxNameLength} characters.`,
        node,
        'Name the column with AS.',
      );
    if (hasControlCharacters(name))
      throw statement.error(
        'A column name must not contain control characters or line breaks.',
        node,
        'Name the column with AS.',
      );
    // Many readers of files ignore the case of column names.
    if (names.has(name.toLowerCase()))
      throw statement.error(`Two columns are named ${name}.`, node, 'Rename one of them with AS.');
    names.add(name.toLowerCase());
    const whole = row.wholeColumn(value);
    return {
      name,
      ...exportedValue(value, whole?.sql),
      expression: expressionText(output),
      column: whole?.name ?? null,
      readsPerson: row.readsPerson(value),
    };
  });
}

/** Rejects expressions that need other rows. @throws DialectError */
function rejectOtherRows({ traits: facts }: Value, statement: Statement): void {
  const { aggregate, window } = facts;
  if (window)
    throw statement.error('A window function is not supported in the query of a batch export.', window);
  if (aggregate)
    throw statement.error(
      'An aggregate is not supported in the query of a batch export.',
      aggregate,
      'A batch export reads rows one by one. Its query can only select columns and filter rows.',
    );
}

const expressionText = ({ node, name }: Output): string => {
  if (node.kind === 'star') return name;
  const expression = node as Expression;
  return printExpression(expression.kind === 'alias' ? expression.expression : expression);
};

interface Condition {
  readonly value: Value;
  readonly sql: Sql;
}

const sqlOf = ({ sql: fragment }: Condition): Sql => fragment;

/** Compiles conditions on one row; null entries are skipped. @throws DialectError */
export function compileConditions(
  nodes: readonly (Expression | null)[],
  scope: Scope,
  statement: Statement,
): readonly Condition[] {
  return nodes.flatMap((node) => {
    if (node === null) return [];
    const value = compiler.value(node, scope, 'filter');
    rejectOtherRows(value, statement);
    return [{ value, sql: sql`(${toCondition(value, node, statement)})` }];
  });
}
