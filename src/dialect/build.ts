import type { DerivedTable, Expression, From, Query, Sample, Select, Table } from './ast.ts';
import { parseExpression, parseQuery } from './parser/parse.ts';
import { resolvePlaceholders, type PlaceholderValue, type PlainValue } from './resolve/placeholders.ts';
import { Source } from './source.ts';

/** Where nodes stand that no text was read for. */
const nowhere = { start: 0, end: 0 };

/** What stands for the `{name}`s of a template: expressions, or values, which never become part of any text. */
export type TemplateParts = Readonly<Record<string, Expression | { readonly value: PlainValue }>>;

/**
 * A SELECT from a text of exportd's own, such as `select count() from events where {condition}`, so that what insights
 * ask can be read as analysts would write it. @throws DialectError for a text that is none, or a part that is missing
 */
export function selectOf(template: string, parts: TemplateParts = {}): Select {
  const filled = resolvePlaceholders(parseQuery(template), valuesOf(parts), new Source(template));
  if (filled.kind !== 'select') throw new Error(`Not one SELECT: ${template}`);
  return filled;
}

/** An expression from a text of exportd's own, such as `toFloat({value}) > {least}`. @throws DialectError */
export function expressionOf(template: string, parts: TemplateParts = {}): Expression {
  if (Object.keys(parts).length === 0) return parseExpression(template);
  const [column] = selectOf(`select ${template}`, parts).columns;
  if (column === undefined) throw new Error(`Not an expression: ${template}`);
  return column;
}

const valuesOf = (parts: TemplateParts): ReadonlyMap<string, PlaceholderValue> =>
  new Map(
    Object.entries(parts).map(([name, part]): [string, PlaceholderValue] => [
      name,
      'kind' in part ? { kind: 'expression', expression: part } : { kind: 'value', value: part.value },
    ]),
  );

/** A field by its path: `fieldOf('person', 'properties', 'e.mail')` needs no quotes. */
export const fieldOf = (...path: readonly [string, ...string[]]): Expression => ({
  kind: 'field',
  path: path.map((text) => ({ kind: 'name', text, ...nowhere })),
  ...nowhere,
});

/** A literal of a value. */
export const literal = (value: PlainValue): Expression => expressionOf('{value}', { value: { value } });

/** A moment, written `2026-11-21T10:00:00`; without an offset it is one of the project's zone. */
export const timeLiteral = (text: string): Expression => ({
  kind: 'time',
  type: 'timestamp',
  text,
  ...nowhere,
});

/** An expression under a name. */
export const named = (expression: Expression, name: string): Expression => ({
  kind: 'alias',
  expression,
  name: { kind: 'name', text: name, ...nowhere },
  ...nowhere,
});

/** All or any of several conditions; those that are null are left out; null when none is left. */
export function joined(
  operator: 'and' | 'or',
  conditions: readonly (Expression | null)[],
): Expression | null {
  const [first, ...rest] = conditions.filter((condition) => condition !== null);
  if (first === undefined) return null;
  return rest.length === 0 ? first : { kind: 'logical', operator, operands: [first, ...rest], ...nowhere };
}

/**
 * A relation by its name: a table, or a query of WITH.
 * @param share above 0, of the ids of a table that are read; null for all of them
 */
export const tableNamed = (name: string, share: number | null = null): Table => ({
  kind: 'table',
  path: [{ kind: 'name', text: name, ...nowhere }],
  alias: null,
  final: false,
  sample: share === null ? null : sampleOf(share),
  ...nowhere,
});

const sampleOf = (share: number): Sample => ({
  kind: 'sample',
  ratio: {
    kind: 'ratio',
    numerator: { kind: 'number', text: String(share), ...nowhere },
    denominator: null,
    ...nowhere,
  },
  offset: null,
  ...nowhere,
});

/** A query as a relation of FROM. */
export const derived = (query: Query, alias: string): DerivedTable => ({
  kind: 'derived_table',
  query,
  alias: { kind: 'name', text: alias, ...nowhere },
  ...nowhere,
});

/** A SELECT that reads another relation. */
export const reading = (select: Select, from: From): Select => ({ ...select, from });
