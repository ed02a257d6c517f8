import { findNodes, type Node } from '../../dialect/ast.ts';
import { parseQuery } from '../../dialect/parser/parse.ts';
import type { PlaceholderValue, Placeholders } from '../../dialect/resolve/placeholders.ts';
import type { JsonValue } from '../../domain/json_value.ts';
import type { UsedVariable } from '../query_kind.ts';
import { filterPlaceholders, type FilterContext } from './filter_placeholders.ts';
import type { DialectQuery } from './schema.ts';

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
