import type { Node } from '../../dialect/ast_node.ts';
import { parseQuery } from '../../dialect/parser/parse.ts';
import type { PlaceholderValue, Placeholders } from '../../dialect/resolve/placeholders.ts';
import { findNodes } from '../../dialect/walk.ts';
import type { JsonValue } from '../../domain/json_value.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { UsedVariable } from '../query_kind.ts';
import type { DialectQuery } from './schema.ts';

type Placeholder = Extract<Node, { kind: 'placeholder' }>;
const isPlaceholder = (node: Node): node is Placeholder => node.kind === 'placeholder';

/** The code names that a text reads as `{variables.…}`; none of a text that cannot be parsed. */
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

/** The variables of a query's text, with the values that its member `variables` gives them. */
export function usedVariables({ query, variables }: DialectQuery): readonly UsedVariable[] {
  const given = Object.entries(variables ?? {});
  return variableNames(query).map((code_name) => {
    const [id, own] = given.find(([, one]) => one.code_name === code_name) ?? [null, undefined];
    const value = own?.isNull ? null : own?.value;
    return { code_name, id: own?.variableId ?? id, ...(value === undefined ? {} : { value }) };
  });
}

/** What stands in the place of the placeholders of a query. @throws QueryInvalid */
export function placeholdersOf(
  { values, filters }: DialectQuery,
  variables: Readonly<Record<string, JsonValue>>,
): Placeholders {
  const { dateRange, properties, filterTestAccounts } = filters ?? {};
  if (dateRange?.date_from || dateRange?.date_to || properties?.length || filterTestAccounts)
    throw new QueryInvalid(
      'not_supported',
      'Filters of a DialectQuery cannot be applied yet; write them into the text.',
      { attr: 'query__filters' },
    );
  const unset: PlaceholderValue = { kind: 'unset' };
  return new Map<string, PlaceholderValue>([
    ['filters.dateRange.from', unset],
    ['filters.dateRange.to', unset],
    ...Object.entries(values ?? {}).map(([name, value]) => [name, { kind: 'value', value }] as const),
    ...Object.entries(variables).map(
      ([name, value]) => [`variables.${name}`, { kind: 'value', value }] as const,
    ),
  ]);
}
