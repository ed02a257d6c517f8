import type { ColumnType } from '../../source/columns.ts';
import type { ValueRange } from './page_range.ts';

/** The range of all values of several pages; undefined without values, or if a page with values has none. */
export function joinRanges(
  type: ColumnType,
  pages: readonly { readonly hasValues: boolean; readonly range?: ValueRange | undefined }[],
): ValueRange | undefined {
  let joint: ValueRange | undefined;
  for (const { hasValues, range } of pages) {
    if (!range) {
      if (hasValues && type !== 'double') return undefined;
      continue;
    }
    joint = joint ? widened(type, joint, range) : range;
  }
  return joint;
}

function widened(type: ColumnType, one: ValueRange, other: ValueRange): ValueRange {
  const min = compareBounds(type, one.min, other.min) <= 0 ? one.min : other.min;
  const max = compareBounds(type, one.max, other.max) >= 0 ? one.max : other.max;
  return { min, max, ...((one.cut ?? other.cut) && { cut: true }) };
}

/** Compares two bounds in the order of the column's type. */
export function compareBounds(type: ColumnType, one: string, other: string): number {
  const [first, second] = [Buffer.from(one, 'base64'), Buffer.from(other, 'base64')];
  switch (type) {
    case 'text':
    case 'json':
    case 'uuid':
    case 'boolean':
      return Buffer.compare(first, second);
    case 'timestamp':
    case 'bigint': {
      const [firstLong, secondLong] = [first.readBigInt64LE(), second.readBigInt64LE()];
      return firstLong < secondLong ? -1 : firstLong > secondLong ? 1 : 0;
    }
    case 'integer':
    case 'date':
      return first.readInt32LE() - second.readInt32LE();
    case 'double': {
      const [firstDouble, secondDouble] = [first.readDoubleLE(), second.readDoubleLE()];
      return firstDouble < secondDouble ? -1 : firstDouble > secondDouble ? 1 : 0;
    }
  }
}
