import {
  type Call,
  type Expression,
  type From,
  type Node,
  type Placeholder,
  type Query,
  type Select,
  type Span,
  type Table,
  transform,
  walk,
} from '../ast.ts';
import { DialectError, nearestName, type QueryText, type TimeUnit, timeUnits } from '../query_text.ts';
import { didYouMean } from './scope.ts';

export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** The replacement of a `{name}` placeholder. */
export type PlaceholderValue =
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'value'; readonly value: JsonValue }
  /** A condition on the table that the enclosing SELECT reads; the SELECT must read one of the supported tables. */
  | { readonly kind: 'condition'; readonly conditionOf: (table: PlaceholderTable) => Expression }
  /** The comparison that contains the placeholder becomes true. */
  | { readonly kind: 'unset' }
  /** A unit as a string. Null: the one in the parentheses of the placeholder, or 'day'. */
  | { readonly kind: 'unit'; readonly unit: TimeUnit | null }
  /** What depends on the columns in the parentheses of the placeholder. */
  | { readonly kind: 'bindings'; readonly expressionOf: (bindings: Bindings) => Expression };

/** The columns of `{filters(day AS timestamp, null AS 'plan')}` by their keys; null for keys to skip. */
export type Bindings = ReadonlyMap<string, Expression | null>;

/** Tables that `{filters}` can restrict. Of several, the first one counts. */
const filteredTables = ['events', 'sessions', 'groups', 'persons'] as const;

/** A table that a SELECT reads, with its name in the query. */
export interface PlaceholderTable {
  readonly table: (typeof filteredTables)[number];
  readonly name: string;
}

/** Replacements by path: `filters`, `filters()`, `filters.dateRange.from`, `variables.country`, `name`. */
export type Placeholders = ReadonlyMap<string, PlaceholderValue>;

/** Replaces the placeholders of a query. Those of filters that are not given filter nothing. @throws DialectError */
export function resolvePlaceholders(query: Query, placeholders: Placeholders, queryText: QueryText): Query {
  const unset = new Set<Node>();
  const selects = enclosingSelects(query);
  const replaced = transform(query, (node) => {
    if (node.kind === 'comparison' && (unset.has(node.left) || unset.has(node.right)))
      return { kind: 'boolean', value: true, start: node.start, end: node.end };
    if (node.kind !== 'placeholder') return node;
    const path = pathOf(node, queryText);
    const value = placeholders.get(path) ?? noFilters.get(path);
    if (value === undefined) throw unresolvedError(node, path, placeholders, queryText);
    if (value.kind === 'expression') return withSpan(value.expression, node);
    if (value.kind === 'value') return literalOf(value.value, node);
    if (value.kind === 'unit') return unitOf(value.unit, node, queryText);
    if (value.kind === 'bindings')
      return withSpan(value.expressionOf(bindingsOf(node, path, queryText)), node);
    if (value.kind === 'condition')
      return withSpan(value.conditionOf(tableOf(selects.get(node) ?? null, node, path, queryText)), node);
    const nothing: Node = { kind: 'null', start: node.start, end: node.end };
    unset.add(nothing);
    return nothing;
  });
  if (replaced.kind !== 'select' && replaced.kind !== 'set_operation') throw new Error('Not a query.');
  return replaced;
}

const nowhere: Span = { start: 0, end: 0 };
const bound = (expression: Expression): PlaceholderValue => ({
  kind: 'bindings',
  expressionOf: () => expression,
});

/** The placeholders of filters without any. */
const noFilters: Placeholders = new Map<string, PlaceholderValue>([
  ['filters', { kind: 'value', value: true }],
  ['filters()', bound({ kind: 'boolean', value: true, ...nowhere })],
  ['filters.interval', { kind: 'unit', unit: null }],
  ['filters.interval()', { kind: 'unit', unit: null }],
  ['filters.breakdown()', bound({ kind: 'null', ...nowhere })],
]);

/** The string of a unit, else that of the default in the placeholder. @throws DialectError */
function unitOf(unit: TimeUnit | null, { expression, start, end }: Placeholder, queryText: QueryText): Node {
  const [given, another] = expression.kind === 'call' ? expression.arguments : [];
  const isUnit =
    given === undefined || (given.kind === 'string' && timeUnits.some((known) => known === given.value));
  if (!isUnit || another !== undefined)
    throw new DialectError(queryText, 'The default of {filters.interval(…)} must be a unit in quotes.', {
      start,
      end,
      suggestion: "Write {filters.interval('week')}.",
    });
  const value = unit ?? (given?.kind === 'string' ? given.value : 'day');
  return { kind: 'string', value, start, end };
}

/** The columns in the parentheses of a placeholder. @throws DialectError unless each has a key of its own */
function bindingsOf({ expression, start, end }: Placeholder, path: string, queryText: QueryText): Bindings {
  const name = path.slice(0, -'()'.length);
  const items = expression.kind === 'call' ? expression.arguments : [];
  const found = new Map<string, Expression | null>();
  for (const item of items) {
    if (item.kind !== 'alias' || found.has(item.name.text)) break;
    found.set(item.name.text, item.expression.kind === 'null' ? null : item.expression);
  }
  if (items.length > 0 && found.size === items.length) return found;
  throw new DialectError(queryText, `Each argument of {${name}(…)} must bind a column to a key of its own.`, {
    start,
    end,
    suggestion: usages[name] ?? null,
  });
}

const usages: Readonly<Record<string, string>> = {
  filters: "Write {filters(created_at AS timestamp, plan AS 'plan')}, and null AS 'plan' to skip a key.",
  'filters.breakdown':
    "Write {filters.breakdown(properties.plan AS 'plan')}, and null AS 'plan' to skip a key.",
};

const isPlainCall = ({ parameters, distinct, orderBy, filter, over }: Call): boolean =>
  parameters === null && !distinct && orderBy.length === 0 && filter === null && over === null;

function pathOf({ expression, start, end }: Placeholder, queryText: QueryText): string {
  if (expression.kind === 'field') return expression.path.map(({ text }) => text).join('.');
  if (expression.kind === 'call' && isPlainCall(expression)) return `${expression.name.text}()`;
  throw new DialectError(
    queryText,
    'A placeholder must be a name, such as {filters} or {variables.country}.',
    {
      start,
      end,
    },
  );
}

function unresolvedError(
  node: Placeholder,
  path: string,
  placeholders: Placeholders,
  queryText: QueryText,
): DialectError {
  const [first, name] = path.split('.');
  const summary =
    first === 'variables' && name !== undefined
      ? `Variable ${name} is missing from query`
      : `Unresolved placeholder: {${path}}`;
  const suggestion = usages[path] ?? didYouMean(nearestName(path, placeholders.keys()));
  return new DialectError(queryText, summary, { start: node.start, end: node.end, suggestion });
}

/** The innermost SELECT around each placeholder. */
function enclosingSelects(query: Query): ReadonlyMap<Node, Select> {
  const found = new Map<Node, Select>();
  walk(query, {
    enter: (node, parents) => {
      const enclosing =
        node.kind === 'placeholder' ? parents.findLast((one) => one.kind === 'select') : undefined;
      if (enclosing !== undefined) found.set(node, enclosing);
      return true;
    },
  });
  return found;
}

function tableOf(
  select: Select | null,
  node: Placeholder,
  path: string,
  queryText: QueryText,
): PlaceholderTable {
  const tables = select?.from ? tablesOf(select.from) : [];
  const named = (tableName: PlaceholderTable['table']): PlaceholderTable | undefined => {
    const found = tables.find((table) => table.path.map(({ text }) => text).join('.') === tableName);
    return found && { table: tableName, name: found.alias?.text ?? tableName };
  };
  for (const known of filteredTables) {
    const table = named(known);
    if (table !== undefined) return table;
  }
  throw new DialectError(
    queryText,
    `Cannot use {${path}} in a SELECT that does not read events, sessions, groups or persons.`,
    { start: node.start, end: node.end, suggestion: usages.filters ?? null },
  );
}

function tablesOf(from: From): readonly Table[] {
  if (from.kind === 'join') return [...tablesOf(from.left), ...tablesOf(from.right)];
  return from.kind === 'table' ? [from] : [];
}

/** Moves an expression of another text to the span of the placeholder. */
function withSpan(expression: Expression, { start, end }: Span): Node {
  return transform(expression, (node) => ({ ...node, start, end }));
}

function literalOf(value: JsonValue, { start, end }: Span): Expression {
  if (value === null) return { kind: 'null', start, end };
  if (typeof value === 'string') return { kind: 'string', value, start, end };
  if (typeof value === 'boolean') return { kind: 'boolean', value, start, end };
  if (typeof value === 'number') return numberOf(value, { start, end });
  if (Array.isArray(value))
    return {
      kind: 'array',
      items: value.map((item: JsonValue) => literalOf(item, { start, end })),
      start,
      end,
    };
  const entries = Object.entries(value).map(([key, item]: [string, JsonValue]) => ({
    kind: 'entry' as const,
    key: { kind: 'string' as const, value: key, start, end },
    value: literalOf(item, { start, end }),
    start,
    end,
  }));
  return { kind: 'dictionary', entries, start, end };
}

function numberOf(value: number, span: Span): Expression {
  const text = Number.isFinite(value) ? String(Math.abs(value)) : Number.isNaN(value) ? 'nan' : 'inf';
  const operand: Expression = { kind: 'number', text, ...span };
  return value < 0 ? { kind: 'unary', operator: '-', operand, ...span } : operand;
}
