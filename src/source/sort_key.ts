import type { SortKey } from '../domain/sort_key.ts';
import { fieldOf, formatUuid } from './binary_tuple.ts';
import type { ModelQuery } from './model_query.ts';
import { formatTimestamp } from './write_timestamp.ts';

/** A row has no usable sort key: a key column is null, or its time cannot be formatted. */
export class MissingSortKey extends Error {
  override readonly name = 'MissingSortKey';
}

/** Returns the sort key of the tuple at `tupleAt`. @throws MissingSortKey */
export function sortKeyAt(
  block: Buffer,
  tupleAt: number,
  { columns, key }: Pick<ModelQuery, 'columns' | 'key'>,
): SortKey {
  const time = fieldOf(block, tupleAt, key.inserted_at);
  const id = fieldOf(block, tupleAt, key.id);
  const idName = columns[key.id]?.name ?? 'id';
  if (id.end < id.start) throw new MissingSortKey(`A row of the source has no ${idName}.`);
  const idText =
    columns[key.id]?.type === 'uuid' ? formatUuid(block, id.start) : block.toString('utf8', id.start, id.end);
  const inserted_at = time.end < time.start ? undefined : formatTimestamp(block, time.start);
  if (inserted_at === undefined)
    throw new MissingSortKey(`The row with ${idName} ${idText} has no valid insertion time.`);
  return { inserted_at, id: idText };
}

/** Whether two tuples in separate buffers have the same key. */
export function sameKey(
  left: Buffer,
  leftAt: number,
  right: Buffer,
  rightAt: number,
  { key }: Pick<ModelQuery, 'key'>,
): boolean {
  return [key.inserted_at, key.id].every((position) => {
    const one = fieldOf(left, leftAt, position);
    const other = fieldOf(right, rightAt, position);
    return (
      left.compare(
        right,
        other.start,
        Math.max(other.start, other.end),
        one.start,
        Math.max(one.start, one.end),
      ) === 0
    );
  });
}
