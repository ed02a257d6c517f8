import type { Expression } from '../../../dialect/ast.ts';
import {
  buildExpression,
  buildField,
  combineConditions,
  buildLiteral,
} from '../../../dialect/ast_builders.ts';
import type { Filter, Operator } from '../draft.ts';
import type { QueryTable } from './query_table.ts';

const nowhere = { start: 0, end: 0 };

const isNumber = (text: string): boolean => /^\d+(?:\.\d+)?$/.test(text);

/** `{field}` is the property, `{value}` what it is compared with. */
const templates: Readonly<Record<Operator, string>> = {
  equals: '{field} = {value}',
  differs: '{field} != {value}',
  contains: '{field} ilike {value}',
  lacks: '{field} not ilike {value}',
  starts: 'startsWith({field}, {value})',
  ends: 'endsWith({field}, {value})',
  greater: 'toFloat({field}) > {value}',
  at_least: 'toFloat({field}) >= {value}',
  less: 'toFloat({field}) < {value}',
  at_most: 'toFloat({field}) <= {value}',
  set: '{field} is not null',
  unset: '{field} is null',
};
const ofNumbers: ReadonlySet<Operator> = new Set<Operator>(['greater', 'at_least', 'less', 'at_most']);
const negative: ReadonlySet<Operator> = new Set<Operator>(['differs', 'lacks']);

/** The condition of a filter. @throws QueryError `unclear` */
export function filterCondition(
  { property, operator, values }: Filter,
  table: QueryTable,
): Expression | null {
  const field = table.property(property);
  const template = templates[operator];
  if (values.length === 0) return buildExpression(template, { field });
  const conditions = values.map((text) => {
    const isEqual = operator === 'equals' || operator === 'differs';
    if (isEqual && isNumber(text))
      return buildExpression(template, {
        field: buildExpression('toFloat({field})', { field }),
        value: { value: Number(text) },
      });
    return buildExpression(template, { field, value: { value: comparand(operator, text) } });
  });
  return combineConditions(negative.has(operator) ? 'and' : 'or', conditions);
}

function comparand(operator: Operator, text: string): string | number {
  if (operator === 'contains' || operator === 'lacks') return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
  return ofNumbers.has(operator) ? Number(text) : text;
}

/** The condition that an event has one of these names; null for all events. */
export function eventsCondition(events: readonly string[]): Expression | null {
  const [only, ...others] = events;
  if (only === undefined) return null;
  const event = buildField('event');
  return others.length === 0
    ? buildExpression('{event} = {name}', { event, name: { value: only } })
    : buildExpression('{event} in {names}', {
        event,
        names: { ...nowhere, kind: 'tuple', items: events.map(buildLiteral) },
      });
}
