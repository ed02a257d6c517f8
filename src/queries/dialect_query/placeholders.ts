import { type Expression, findNodes, type Node } from '@exportd/dialect/ast';
import { buildExpression, buildField, buildLiteral, combineConditions } from '@exportd/dialect/ast_builders';
import { parseQuery } from '@exportd/dialect/parser/queries';
import type {
  Bindings,
  Placeholders,
  PlaceholderTable,
  PlaceholderValue,
} from '@exportd/dialect/resolve/placeholders';
import type { JsonValue } from '@exportd/dialect/resolve/placeholders';
import { filterBounds } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { breakdownsOf, cohortBreakdownOf } from '../breakdowns.ts';
import { fallibleFilters, filtersCondition, testAccountsCondition } from '../property_filters.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext, UsedVariable } from '../query_kind.ts';
import type { DialectQuery } from './schema.ts';

/** What the dates of filters are resolved against. */
type FilterContext = Pick<QueryContext, 'project' | 'now'>;

/** The placeholder `{filters}`, and the two bounds of its dates, whose comparisons are true if the bound is missing. */
function filterPlaceholders(
  filters: DialectQuery['filters'],
  context: FilterContext,
  attr: string,
): readonly (readonly [string, PlaceholderValue])[] {
  const bounds = filterBounds(filters?.dateRange, context, `${attr}__dateRange`);
  return [
    ['filters.dateRange.from', orUnset(bounds.from)],
    ['filters.dateRange.to', orUnset(bounds.to?.moment ?? null)],
    [
      'filters',
      { kind: 'condition', conditionOf: (rows) => condition(filters, bounds, rows, context, attr) },
    ],
    [
      'filters()',
      {
        kind: 'bindings',
        expressionOf: (bindings) => boundCondition(filters, bounds, bindings, context, attr),
      },
    ],
    ['filters.interval', { kind: 'unit', unit: filters?.interval ?? null }],
    ['filters.interval()', { kind: 'unit', unit: filters?.interval ?? null }],
    [
      'filters.breakdown()',
      {
        kind: 'bindings',
        expressionOf: (bindings) => boundBreakdown(filters?.breakdownFilter, bindings, attr),
      },
    ],
  ];
}

const orUnset = (expression: Expression | null): PlaceholderValue =>
  expression === null ? { kind: 'unset' } : { kind: 'expression', expression };

const times = {
  events: 'timestamp',
  sessions: '$start_timestamp',
  groups: 'created_at',
  persons: 'created_at',
} as const;

type Bounds = ReturnType<typeof filterBounds>;

const rangeOf = (time: Expression, { from, to }: Bounds): readonly (Expression | null)[] => [
  from && buildExpression('{time} >= {bound}', { time, bound: from }),
  to &&
    buildExpression(`{time} ${to.isInclusive ? '<=' : '<'} {bound}`, {
      time,
      bound: to.moment,
    }),
];

function condition(
  filters: DialectQuery['filters'],
  bounds: Bounds,
  { table, name }: PlaceholderTable,
  { project }: FilterContext,
  attr: string,
): Expression {
  const time = buildField(name, times[table]);
  const excludesTestAccounts = filters?.filterTestAccounts === true;
  if (excludesTestAccounts && table !== 'events')
    throw new QueryError(
      'not_supported',
      `Test accounts can only be excluded from events, not from ${table}.`,
      {
        attr: `${attr}__filterTestAccounts`,
      },
    );
  return (
    combineConditions('and', [
      ...rangeOf(time, bounds),
      filtersCondition(filters?.properties, {
        scope: table,
        relation: name,
        attr: `${attr}__properties`,
        ...(table === 'groups' && { groups: { index: null, key: buildField(name, 'key') } }),
      }),
      excludesTestAccounts ? testAccountsCondition(project, 'events', { relation: name }) : null,
    ]) ?? buildLiteral(true)
  );
}

/** The same on the columns that the query binds. @throws QueryError for a filter whose key is not bound */
function boundCondition(
  filters: DialectQuery['filters'],
  bounds: Bounds,
  bindings: Bindings,
  { project }: FilterContext,
  attr: string,
): Expression {
  const time = bindings.get('timestamp');
  if (time === undefined && (bounds.from ?? bounds.to) !== null)
    throw new QueryError(
      'invalid_input',
      '{filters(…)} binds no column to the dates. Write {filters(created_at AS timestamp)}, or null AS timestamp to skip them.',
      { attr: `${attr}__dateRange` },
    );
  return (
    combineConditions('and', [
      ...(time ? rangeOf(time, bounds) : []),
      filtersCondition(filters?.properties, { scope: 'events', bindings, attr: `${attr}__properties` }),
      filters?.filterTestAccounts ? testAccountsCondition(project, 'events', { bindings }) : null,
    ]) ?? buildLiteral(true)
  );
}

/** The column that the query binds to the property of a breakdown; null without a breakdown. @throws QueryError */
function boundBreakdown(filter: BreakdownFilter, bindings: Bindings, attr: string): Expression {
  const path = `${attr}__breakdownFilter`;
  const [breakdown, another] = breakdownsOf(filter);
  const names = [breakdown?.property ?? []].flat();
  if (another !== undefined || names.length > 1 || cohortBreakdownOf(filter) !== null || breakdown?.bins)
    throw new QueryError(
      'not_supported',
      '{filters.breakdown(…)} supports one property, neither cohorts nor bins.',
      { attr: path },
    );
  if (breakdown === undefined) return buildLiteral(null);
  const key = String(names[0] ?? '');
  const bound = bindings.get(key);
  if (bound !== undefined) return bound ?? buildLiteral(null);
  throw new QueryError(
    'invalid_input',
    `{filters.breakdown(…)} binds no column to '${key}'. Write {filters.breakdown(column AS '${key}')}, or null AS '${key}' to skip it.`,
    { attr: path },
  );
}

type BreakdownFilter = Parameters<typeof breakdownsOf>[0];

type Placeholder = Extract<Node, { kind: 'placeholder' }>;
const isPlaceholder = (node: Node): node is Placeholder => node.kind === 'placeholder';

/** The code names in `{variables.…}` of a text; none if it cannot be parsed. */
function variableNames(text: string): readonly string[] {
  try {
    const names = findNodes(parseQuery(text), isPlaceholder).flatMap(({ expression }) => {
      if (expression.kind !== 'field') return [];
      const [first, second] = expression.path;
      return first?.text === 'variables' && second ? [second.text] : [];
    });
    return [...new Set(names)];
  } catch {
    return [];
  }
}

/** The variables in a query's text, with the values in its field `variables`. */
export function usedVariables({ query, variables }: DialectQuery): readonly UsedVariable[] {
  const given = Object.entries(variables ?? {});
  return variableNames(query).map((code_name) => {
    const [id, own] = given.find(([, one]) => one.code_name === code_name) ?? [null, undefined];
    const value = own?.isNull ? null : own?.value;
    return { code_name, id: own?.variableId ?? id, ...(value === undefined ? {} : { value }) };
  });
}

/** What the values of placeholders depend on besides the query. */
export type PlaceholderContext = FilterContext & {
  /** Values of the variables that the query reads, by code name. */
  readonly variables: Readonly<Record<string, JsonValue>>;
};

/**
 * The values of a query's placeholders.
 * @param attr path of the query
 * @throws QueryError for filters that cannot be applied; for some of them only when the compiler knows which table they
 * filter
 */
export const placeholdersOf = (
  { values, filters }: DialectQuery,
  context: PlaceholderContext,
  attr = 'query',
): Placeholders =>
  new Map<string, PlaceholderValue>([
    ...filterPlaceholders(filters, context, `${attr}__filters`),
    ...Object.entries(values ?? {}).map(([name, value]) => [name, { kind: 'value', value }] as const),
    ...Object.entries(context.variables).map(
      ([name, value]) => [`variables.${name}`, { kind: 'value', value }] as const,
    ),
  ]);

/**
 * Runs a dialect query. If its text is rejected only because of `{filters}`, the error names the first invalid filter.
 * @param attr path of the query
 * @throws QueryError
 */
export async function withFilterPath<Result>(
  run: () => Result | Promise<Result>,
  query: DialectQuery,
  {
    reader,
    attr,
    ...context
  }: PlaceholderContext & { readonly reader: DialectReader; readonly attr: string },
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const { filters } = query;
    const isOfText =
      error instanceof QueryError && error.code === 'dialect_error' && error.attr === `${attr}__query`;
    if (!isOfText || !filters) throw error;
    const compileWith = (changed: DialectQuery['filters'], path: string): void => {
      const placeholders = placeholdersOf({ ...query, filters: { ...filters, ...changed } }, context, attr);
      reader.compile(query.query, { placeholders, attr: path });
    };
    compileWith({ properties: [], filterTestAccounts: false }, error.attr);
    for (const item of fallibleFilters(filters.properties, `${attr}__filters__properties`))
      compileWith({ properties: [item.filter], filterTestAccounts: false }, item.attr);
    compileWith({ properties: [] }, `${attr}__filters__filterTestAccounts`);
    throw error;
  }
}
