import type { DerivedTable, Expression, From, Join, OrderItem, Query, Sample, Select, Table } from './ast.ts';
import { QueryText } from './query_text.ts';
import { parseExpression, parseQuery } from './parser/queries.ts';
import { type JsonValue, type PlaceholderValue, resolvePlaceholders } from './resolve/placeholders.ts';

/** The span of nodes that do not come from a query text. */
const noSpan = { start: 0, end: 0 };

/**
 * Replacements for the `{name}` placeholders of a template: expressions or values. Values never become part of a
 * text.
 */
export type TemplateValues = Readonly<Record<string, Expression | { readonly value: JsonValue }>>;

/**
 * Builds a SELECT from a template in the code, such as `select count() from events where {condition}`. Insights use
 * it so that their queries read like SQL.
 * @throws DialectError if the template does not parse or a placeholder has no replacement
 */
export function buildSelect(template: string, values: TemplateValues = {}): Select {
  const filled = resolvePlaceholders(parseQuery(template), placeholdersOf(values), new QueryText(template));
  if (filled.kind !== 'select') throw new Error(`Not one SELECT: ${template}`);
  return filled;
}

/** Builds an expression from a template in the code, such as `toFloat({value}) > {least}`. @throws DialectError */
export function buildExpression(template: string, values: TemplateValues = {}): Expression {
  if (Object.keys(values).length === 0) return parseExpression(template);
  const [column] = buildSelect(`select ${template}`, values).columns;
  if (column === undefined) throw new Error(`Not an expression: ${template}`);
  return column;
}

const placeholdersOf = (values: TemplateValues): ReadonlyMap<string, PlaceholderValue> =>
  new Map(
    Object.entries(values).map(([name, part]): [string, PlaceholderValue] => [
      name,
      'kind' in part ? { kind: 'expression', expression: part } : { kind: 'value', value: part.value },
    ]),
  );

/** A field with this path: `buildField('person', 'properties', 'e.mail')` needs no quotes. */
export const buildField = (...path: readonly [string, ...string[]]): Expression => ({
  kind: 'field',
  path: path.map((text) => ({ kind: 'name', text, ...noSpan })),
  ...noSpan,
});

export const buildLiteral = (value: JsonValue): Expression =>
  buildExpression('{value}', { value: { value } });

/** A timestamp literal such as `2026-11-21T10:00:00`. Without an offset it is in the project's time zone. */
export const buildTimeLiteral = (text: string): Expression => ({
  kind: 'time',
  type: 'timestamp',
  text,
  ...noSpan,
});

export const buildAlias = (expression: Expression, name: string): Expression => ({
  kind: 'alias',
  expression,
  name: { kind: 'name', text: name, ...noSpan },
  ...noSpan,
});

/** Combines conditions with AND or OR. Null conditions are skipped; the result is null if none is left. */
export function combineConditions(
  operator: 'and' | 'or',
  conditions: readonly (Expression | null)[],
): Expression | null {
  const [first, ...rest] = conditions.filter((condition) => condition !== null);
  if (first === undefined) return null;
  return rest.length === 0 ? first : { kind: 'logical', operator, operands: [first, ...rest], ...noSpan };
}

/** A table or a CTE by name. @param share the share of ids to read, above 0; null reads all */
export const buildTable = (name: string, share: number | null = null): Table => ({
  kind: 'table',
  path: [{ kind: 'name', text: name, ...noSpan }],
  alias: null,
  final: false,
  sample: share === null ? null : buildSample(share),
  ...noSpan,
});

const buildSample = (share: number): Sample => ({
  kind: 'sample',
  ratio: {
    kind: 'ratio',
    numerator: { kind: 'number', text: String(share), ...noSpan },
    denominator: null,
    ...noSpan,
  },
  offset: null,
  ...noSpan,
});

/** A subquery in FROM. */
export const buildDerivedTable = (query: Query, alias: string): DerivedTable => ({
  kind: 'derived_table',
  query,
  alias: { kind: 'name', text: alias, ...noSpan },
  ...noSpan,
});

/** The rows of both sides that meet a condition; `left` also keeps unmatched rows of the left side. */
export function buildJoin(type: 'left' | 'inner', left: From, right: From, condition: Expression): Join {
  const { from } = buildSelect(`select 1 from a ${type} join b on {condition}`, { condition });
  if (from?.kind !== 'join') throw new Error('Not a join.');
  return { ...from, left, right };
}

/** An item of ORDER BY. */
export const buildOrderItem = (expression: Expression, descending: boolean): OrderItem => ({
  kind: 'order_item',
  expression,
  descending,
  nulls: null,
  fill: null,
  ...noSpan,
});

/** The same SELECT with another FROM. */
export const withFrom = (select: Select, from: From): Select => ({ ...select, from });
