import type { Expression, OrderItem } from '../../dialect/ast.ts';
import { buildExpression, buildField } from '../../dialect/ast_builders.ts';
import { parseOrderItem } from '../../dialect/parser/parse.ts';
import { withoutName } from '../aggregate_calls.ts';
import { parseOrderItemAt } from '../parse_fragments.ts';
import { displayProperties } from '../persons/display_name.ts';
import { QueryError } from '../query_errors.ts';
import type { EventEntry } from './select_entries.ts';

const item = (expression: Expression, descending: boolean): OrderItem => ({
  ...parseOrderItem('1'),
  expression,
  descending,
});

/**
 * The sort order: `orderBy`, else the count or the first aggregate in descending order, else the time in descending
 * order if selected, else the first entry. Ties are broken by uuid or by the GROUP BY keys so that pages do not
 * overlap.
 * @throws QueryError with the path of the entry of `orderBy`
 */
export function orderOf(
  orderBy: readonly string[] | null | undefined,
  entries: readonly EventEntry[],
  isGrouped: boolean,
): readonly OrderItem[] {
  const explicit = orderBy?.length
    ? orderBy.map((text, at) => readItem(text, at, entries))
    : defaultOrder(entries);
  const rest = isGrouped
    ? entries.flatMap(({ keys, format }) => (format === 'event' ? [] : keys))
    : [buildField('events', 'uuid')];
  return [...explicit, ...rest.map((expression) => item(expression, false))];
}

function readItem(text: string, at: number, entries: readonly EventEntry[]): OrderItem {
  const attr = `query__orderBy__${at}`;
  const order = parseOrderItemAt(text, attr);
  const { expression } = order;
  if (expression.kind === 'number') {
    const entry = entries[Number(expression.text) - 1];
    if (entry !== undefined) return { ...order, expression: withoutName(entry.expressions[0]) };
    throw new QueryError('invalid_input', `select has no entry ${expression.text}.`, { attr });
  }
  const isPerson =
    expression.kind === 'field' &&
    expression.path.length === 1 &&
    ['person', 'person_display_name'].includes(expression.path[0]?.text ?? '');
  return isPerson ? { ...order, expression: displayNameExpression() } : order;
}

/** The display name of a person, as far as SQL can compute it. */
const displayNameExpression = (): Expression => {
  const names = displayProperties.map((name) => `nullIf(toString(events.person.properties.${name}), '')`);
  return buildExpression(`coalesce(${names.join(', ')}, events.distinct_id)`);
};

function defaultOrder(entries: readonly EventEntry[]): readonly OrderItem[] {
  const counted = entries.find(({ expressions: [first] }) => isCount(withoutName(first)));
  const aggregate = counted ?? entries.find(({ isAggregate }) => isAggregate);
  if (aggregate) return [item(withoutName(aggregate.expressions[0]), true)];
  const time = entries.find(
    ({ format, expressions: [first] }) => format === 'value' && isTime(withoutName(first)),
  );
  if (time) return [item(withoutName(time.expressions[0]), true)];
  const first = entries.find(({ keys }) => keys.length > 0);
  return first ? [item(withoutName(first.expressions[0]), false)] : [];
}

const isCount = (expression: Expression): boolean =>
  expression.kind === 'call' &&
  expression.name.text.toLowerCase() === 'count' &&
  expression.arguments.length === 0 &&
  expression.over === null;

const isTime = (expression: Expression): boolean =>
  expression.kind === 'field' && expression.path.length === 1 && expression.path[0]?.text === 'timestamp';
