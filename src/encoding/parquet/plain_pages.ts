import { isUtf8 } from 'node:buffer';
import { appendBytes, type GrowingBuffer, reserve } from '../memory.ts';
import { InvalidText } from '../rows.ts';
import { epochDays, epochShift, jsonbVersion } from './field_index.ts';
import type { FileColumnValues } from './file_columns.ts';
import { addBytes, createPageRange, type PageRange, valueRangeOf } from './page_range.ts';
import {
  definitionLevels,
  definitionLevelsBound,
  endOfRowsWith,
  pageBytes,
  type PageWriter,
  writeDataPage,
} from './page_writer.ts';

const epochShiftLow = epochShift % 0x1_0000_0000;
const epochShiftHigh = Math.floor(epochShift / 0x1_0000_0000);

/**
 * Appends values in PLAIN encoding, from index `from` of `positions` up to `until`, or until the page has at least
 * `limit` bytes. Booleans must be appended in multiples of eight, except at the end. `range` is widened to the values.
 * @returns the index of the first value that was not appended
 * @throws InvalidText
 */
function appendPlain(
  page: GrowingBuffer,
  values: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
): number {
  switch (values.column.type) {
    case 'text':
      return values.entryBytes === undefined
        ? appendByteArrays(page, values, from, until, limit, range, false)
        : appendEntries(page, values, values.entryBytes, from, until, limit, range);
    case 'json':
      return appendByteArrays(page, values, from, until, limit, range, true);
    case 'timestamp':
      return appendLongs(page, values, from, until, limit, range, epochShiftHigh, epochShiftLow);
    case 'bigint':
      return appendLongs(page, values, from, until, limit, range, 0, 0);
    case 'integer':
      return appendIntegers(page, values, from, until, limit, range, 0);
    case 'date':
      return appendIntegers(page, values, from, until, limit, range, epochDays);
    case 'double':
      return appendDoubles(page, values, from, until, limit, range);
    case 'boolean':
      return appendBooleans(page, values, from, until, limit, range);
  }
}

/**
 * Length and bytes of each value, without the version byte of jsonb. First the lengths are zero, so that all values are
 * checked at once: a character that continues in the next value is invalid.
 */
function appendByteArrays(
  page: GrowingBuffer,
  { block, view, positions }: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
  json: boolean,
): number {
  const firstAt = page.length;
  let index = from;
  for (; index < until && page.length < limit; index += 1) {
    const position = positions[index] ?? 0;
    const end = position + 4 + view.getInt32(position);
    let start = position + 4;
    if (json && start < end && block[start] === jsonbVersion) start += 1;
    // A range of JSON texts excludes nothing.
    if (!json) addBytes(range, view, start, end);
    reserve(page, end - start + 4);
    page.view.setInt32(page.length, 0);
    page.length += 4;
    appendBytes(page, block, start, end);
  }
  if (!isUtf8(page.bytes.subarray(firstAt, page.length))) throw new InvalidText();
  const target = page.view;
  let to = firstAt;
  for (let value = from; value < index; value += 1) {
    const position = positions[value] ?? 0;
    let length = view.getInt32(position);
    if (json && length > 0 && block[position + 4] === jsonbVersion) length -= 1;
    target.setInt32(to, length, true);
    to += 4 + length;
  }
  return index;
}

/** The same for entries of one size, which are copied together. */
function appendEntries(
  page: GrowingBuffer,
  { block, view }: FileColumnValues,
  size: number,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
): number {
  const end = lastFitting(page, from, until, limit, size);
  page.bytes.set(block.subarray(from * size, end * size), page.length);
  const target = page.view;
  for (let index = from; index < end; index += 1, page.length += size) {
    addBytes(range, view, index * size + 4, (index + 1) * size);
    target.setInt32(page.length, size - 4, true);
  }
  return end;
}

/** Writes an int64 as two halves, to avoid BigInt. */
function appendLongs(
  page: GrowingBuffer,
  { view, positions }: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
  shiftHigh: number,
  shiftLow: number,
): number {
  const end = lastFitting(page, from, until, limit, 8);
  const target = page.view;
  let { filled, min, minEnd, max, maxEnd } = range;
  let to = page.length;
  for (let index = from; index < end; index += 1, to += 8) {
    const start = (positions[index] ?? 0) + 4;
    const high = view.getInt32(start);
    const low = view.getUint32(start + 4);
    const shiftedLow = low + shiftLow;
    const writtenLow = shiftedLow >>> 0;
    const writtenHigh = high + shiftHigh + (shiftedLow >= 0x1_0000_0000 ? 1 : 0);
    target.setInt32(to, writtenLow, true);
    target.setInt32(to + 4, writtenHigh, true);
    if (!filled || writtenHigh < min || (writtenHigh === min && writtenLow < minEnd)) {
      min = writtenHigh;
      minEnd = writtenLow;
    }
    if (!filled || writtenHigh > max || (writtenHigh === max && writtenLow > maxEnd)) {
      max = writtenHigh;
      maxEnd = writtenLow;
    }
    filled = true;
  }
  Object.assign(range, { filled, min, minEnd, max, maxEnd });
  page.length = to;
  return end;
}

function appendIntegers(
  page: GrowingBuffer,
  { view, positions }: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
  shift: number,
): number {
  const end = lastFitting(page, from, until, limit, 4);
  const target = page.view;
  let { filled, min, max } = range;
  let to = page.length;
  for (let index = from; index < end; index += 1, to += 4) {
    const value = view.getInt32((positions[index] ?? 0) + 4) + shift;
    target.setInt32(to, value, true);
    if (!filled || value < min) min = value;
    if (!filled || value > max) max = value;
    filled = true;
  }
  Object.assign(range, { filled, min, max });
  page.length = to;
  return end;
}

function appendDoubles(
  page: GrowingBuffer,
  { view, positions }: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
): number {
  const end = lastFitting(page, from, until, limit, 8);
  const target = page.view;
  let to = page.length;
  for (let index = from; index < end; index += 1, to += 8) {
    const value = view.getFloat64((positions[index] ?? 0) + 4);
    target.setFloat64(to, value, true);
    addNumber(range, value);
  }
  page.length = to;
  return end;
}

function addNumber(range: PageRange, value: number): void {
  if (Number.isNaN(value)) return;
  if (!range.filled || value < range.min) range.min = value;
  if (!range.filled || value > range.max) range.max = value;
  range.filled = true;
}

/** Eight booleans per byte, the first in the lowest bit. */
function appendBooleans(
  page: GrowingBuffer,
  { block, positions }: FileColumnValues,
  from: number,
  until: number,
  limit: number,
  range: PageRange,
): number {
  const end = lastFitting(page, from, until, limit, 1 / 8);
  for (let index = from; index < end; index += 8) {
    let bits = 0;
    for (let bit = 0; bit < 8 && index + bit < end; bit += 1) {
      const value = block[(positions[index + bit] ?? 0) + 4] === 1 ? 1 : 0;
      bits |= value << bit;
      addNumber(range, value);
    }
    page.bytes[page.length] = bits;
    page.length += 1;
  }
  return end;
}

/** The end of the values of `size` bytes that fit in the page. Reserves their space. */
function lastFitting(page: GrowingBuffer, from: number, until: number, limit: number, size: number): number {
  const end = Math.min(until, from + Math.ceil((limit - page.length) / size));
  reserve(page, Math.ceil((end - from) * size));
  return end;
}

/** The pages of a column in PLAIN encoding. */
interface PlainPages {
  /** Writes the remaining values up to index `until`. A page is compressed as soon as it is full. */
  writeUntil(until: number): void;
  /** Writes the remaining values. */
  finish(rows: number): void;
}

/** Starts the pages of a column. `page` holds the current page. */
export function createPlainPages(
  values: FileColumnValues,
  writer: PageWriter,
  page: GrowingBuffer,
): PlainPages {
  const { type } = values.column;
  let range = createPageRange();
  let value = 0;
  let pageValue = 0;
  let pageRow = 0;
  let valuesAt = 0;

  // The levels precede the values, but their size is known only at the end of the page.
  const startPage = (): void => {
    pageValue = value;
    valuesAt = definitionLevelsBound(values.present.length - pageRow);
    page.length = 0;
    reserve(page, valuesAt);
    page.length = valuesAt;
    range = createPageRange();
  };

  const endPage = (untilRow: number): void => {
    const rows = untilRow - pageRow;
    const nulls = rows - (value - pageValue);
    const levels = definitionLevels(values.present.subarray(pageRow, untilRow), nulls);
    const from = valuesAt - levels.length;
    page.bytes.set(levels, from);
    const described = { rows, nulls, range: valueRangeOf(type, range, values.block) };
    writeDataPage(writer, page.bytes.subarray(from, page.length), described, 'PLAIN');
    pageRow = untilRow;
    startPage();
  };

  startPage();
  return {
    writeUntil(until) {
      while (value < until) {
        value = appendPlain(page, values, value, until, valuesAt + pageBytes, range);
        if (page.length >= valuesAt + pageBytes)
          endPage(endOfRowsWith(values.present, pageRow, value - pageValue));
      }
    },
    finish(rows) {
      this.writeUntil(values.count);
      if (pageRow < rows) endPage(rows);
    },
  };
}
