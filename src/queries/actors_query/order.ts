import type { Expression, OrderItem } from '../../dialect/ast.ts';
import { fieldOf } from '../../dialect/build.ts';
import { parseOrderItem } from '../../dialect/parser/parse.ts';
import { withoutName } from '../aggregate_calls.ts';
import { readOrderItem } from '../dialect_texts.ts';
import type { ActorsFrom } from './actors_source.ts';
import type { SelectEntry } from './select_entries.ts';

const item = (expression: Expression, descending: boolean): OrderItem => ({
  ...parseOrderItem('1'),
  expression,
  descending,
});

/** A single word, which may be an entry that shows actors: they are sorted by a property. */
const word = /^(?<name>\S+)(?:\s+(?:asc|(?<down>desc)))?$/i;

/**
 * What rows are sorted by: `orderBy`, else the counts or the first aggregate, largest first, else the newest where the
 * time is asked for, else the first column. Rows that are equal in that come by their ids, so that pages do not overlap.
 * @throws QueryInvalid that names the entry of `orderBy`
 */
export function orderOf(
  orderBy: readonly string[] | null | undefined,
  entries: readonly SelectEntry[],
  from: ActorsFrom,
): readonly OrderItem[] {
  const isGrouped = entries.some(({ isAggregate }) => isAggregate);
  const wanted = orderBy?.length ? orderBy.map((text, index) => read(text, index, from)) : usual(entries);
  return isGrouped ? wanted : [...wanted, item(from.id, false)];
}

function read(text: string, index: number, { kind, inPlace }: ActorsFrom): OrderItem {
  const { name, down } = word.exec(text.trim())?.groups ?? {};
  if (name !== undefined && Object.hasOwn(kind.entries, name.toLowerCase()))
    return item(fieldOf('properties', kind.sortedBy), down !== undefined);
  const order = readOrderItem(text, `query__orderBy__${index}`);
  return { ...order, expression: inPlace(order.expression) };
}

function usual(entries: readonly SelectEntry[]): readonly OrderItem[] {
  const counted = entries.find(({ column }) => column.trim() === 'count()');
  const aggregate = counted ?? entries.find(({ isAggregate }) => isAggregate);
  if (aggregate) return [item(withoutName(aggregate.expression), true)];
  const newest = entries.find(({ column }) => column.trim() === 'created_at');
  if (newest) return [item(newest.expression, true)];
  const first = entries.find(({ isKey }) => isKey);
  return first ? [item(withoutName(first.expression), false)] : [];
}
