import type { Expression, OrderItem } from '../../dialect/ast.ts';
import { buildField } from '../../dialect/ast_builders.ts';
import { parseOrderItem } from '../../dialect/parser/parse.ts';
import { withoutName } from '../aggregate_calls.ts';
import { parseOrderItemAt } from '../parse_fragments.ts';
import type { ActorsFrom } from './actors_source.ts';
import type { SelectEntry } from './select_entries.ts';

const item = (expression: Expression, descending: boolean): OrderItem => ({
  ...parseOrderItem('1'),
  expression,
  descending,
});

/** A single word can name an entry that shows actors; those are sorted by a property. */
const word = /^(?<name>\S+)(?:\s+(?:asc|(?<down>desc)))?$/i;

/**
 * The sort order: `orderBy`, else the count or the first aggregate in descending order, else `created_at` in descending
 * order if selected, else the first column. Ties are broken by id so that pages do not overlap.
 * @throws QueryError with the path of the entry of `orderBy`
 */
export function orderOf(
  orderBy: readonly string[] | null | undefined,
  entries: readonly SelectEntry[],
  from: ActorsFrom,
): readonly OrderItem[] {
  const isGrouped = entries.some(({ isAggregate }) => isAggregate);
  const explicit = orderBy?.length
    ? orderBy.map((text, index) => read(text, index, from))
    : defaultOrder(entries);
  return isGrouped ? explicit : [...explicit, item(from.id, false)];
}

function read(text: string, index: number, { kind, resolve }: ActorsFrom): OrderItem {
  const { name, down } = word.exec(text.trim())?.groups ?? {};
  if (name !== undefined && Object.hasOwn(kind.entries, name.toLowerCase()))
    return item(buildField('properties', kind.sortedBy), down !== undefined);
  const order = parseOrderItemAt(text, `query__orderBy__${index}`);
  return { ...order, expression: resolve(order.expression) };
}

function defaultOrder(entries: readonly SelectEntry[]): readonly OrderItem[] {
  const counted = entries.find(({ column }) => column.trim() === 'count()');
  const aggregate = counted ?? entries.find(({ isAggregate }) => isAggregate);
  if (aggregate) return [item(withoutName(aggregate.expression), true)];
  const newest = entries.find(({ column }) => column.trim() === 'created_at');
  if (newest) return [item(newest.expression, true)];
  const first = entries.find(({ isKey }) => isKey);
  return first ? [item(withoutName(first.expression), false)] : [];
}
