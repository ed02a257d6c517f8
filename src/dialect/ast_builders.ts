import type { DerivedTable, Expression, From, Query, Sample, Select, Table } from './ast.ts';
import { parseExpression, parseQuery } from './parser/parse.ts';
import { resolvePlaceholders, type PlaceholderValue, type JsonValue } from './resolve/placeholders.ts';
import { QueryText } from './query_text.ts';

/** Where nodes stand that no text was read for. */
const noSpan = { start: 0, end: 0 };

/** What stands for the `{name}`s of a template: expressions, or values, which never become part of any text. */
export type TemplateValues = Readonly<Record<string, Expression | { readonly value: JsonValue }>>;

/**
 * A SELECT from a text of exportd's own, such as `select count() from events where {condition}`, so that what insights
 * ask can be read as analysts would write it. @throws DialectError for a text that is none, or a part that is missing
 */
export function buildSelect(template: string, values: TemplateValues = {}): Select {
  const filled = resolvePlaceholders(parseQuery(template), placeholdersOf(values), new QueryText(template));
  if (filled.kind !== 'select') throw new Error(`Not one SELECT: ${template}`);
  return filled;
}

/** An expression from a text of exportd's own, such as `toFloat({value}) > {least}`. @throws DialectError */
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

/** A field by its path: `buildField('person', 'properties', 'e.mail')` needs no quotes. */
export const buildField = (...path: readonly [string, ...string[]]): Expression => ({
  kind: 'field',
  path: path.map((text) => ({ kind: 'name', text, ...noSpan })),
  ...noSpan,
});

/** A literal of a value. */
export const buildLiteral = (value: JsonValue): Expression =>
  buildExpression('{value}', { value: { value } });

/** A moment, written `2026-11-21T10:00:00`; without an offset it is one of the project's zone. */
export const buildTimeLiteral = (text: string): Expression => ({
  kind: 'time',
  type: 'timestamp',
  text,
  ...noSpan,
});

/** An expression under a name. */
export const buildAlias = (expression: Expression, name: string): Expression => ({
  kind: 'alias',
  expression,
  name: { kind: 'name', text: name, ...noSpan },
  ...noSpan,
});

/** All or any of several conditions; those that are null are left out; null when none is left. */
export function combineConditions(
  operator: 'and' | 'or',
  conditions: readonly (Expression | null)[],
): Expression | null {
  const [first, ...rest] = conditions.filter((condition) => condition !== null);
  if (first === undefined) return null;
  return rest.length === 0 ? first : { kind: 'logical', operator, operands: [first, ...rest], ...noSpan };
}

/**
 * A relation by its name: a table, or a query of WITH.
 * @param share above 0, of the ids of a table that are read; null for all of them
 */
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

/** A query as a relation of FROM. */
export const buildDerivedTable = (query: Query, alias: string): DerivedTable => ({
  kind: 'derived_table',
  query,
  alias: { kind: 'name', text: alias, ...noSpan },
  ...noSpan,
});

/** A SELECT that reads another relation. */
export const withFrom = (select: Select, from: From): Select => ({ ...select, from });
