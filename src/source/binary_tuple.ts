/** Rows as binary COPY sends them, and their sort keys. */
import type { SortKey } from '../domain/sort_key.ts';
import type { ModelQuery } from './model_query.ts';
import { formatTimestamp } from './write_timestamp.ts';

/** The byte range of a field in a block. */
interface Field {
  readonly start: number;
  readonly end: number;
}

/** The bytes of field `field` (from 0) of the binary COPY tuple at `tupleAt`. For null, `end` is less than `start`. */
export function fieldOf(block: Buffer, tupleAt: number, field: number): Field {
  let at = tupleAt + 2;
  for (let passed = 0; passed < field; passed += 1) at += 4 + Math.max(0, block.readInt32BE(at));
  const start = at + 4;
  return { start, end: start + block.readInt32BE(at) };
}

/** The end of the binary COPY tuple at an offset. */
export function endOfTuple(block: Buffer, start: number): number {
  let at = start + 2;
  for (let left = block.readInt16BE(start); left > 0; left -= 1) at += 4 + Math.max(0, block.readInt32BE(at));
  return at;
}

/** Formats the binary uuid at `at`. */
export function formatUuid(source: Buffer, at: number): string {
  const text = source.toString('hex', at, at + 16);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

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
