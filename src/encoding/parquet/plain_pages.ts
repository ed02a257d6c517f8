import { reserve, type GrowingBuffer } from '../growing_buffer.ts';
import type { ColumnValues } from './column_values.ts';
import {
  definitionLevels,
  definitionLevelsBound,
  pageBytes,
  endOfRowsWith,
  writeDataPage,
  type PageWriter,
} from './page_writer.ts';
import { createPageRange, valueRangeOf } from './page_range.ts';
import { appendPlain } from './plain.ts';

/** The pages of a column in PLAIN encoding. */
export interface PlainPages {
  /** Writes the remaining values up to index `until`. A page is compressed as soon as it is full. */
  writeUntil(until: number): void;
  /** Writes the remaining values. */
  finish(rows: number): void;
}

/** Starts the pages of a column. `page` holds the current page. */
export function createPlainPages(values: ColumnValues, writer: PageWriter, page: GrowingBuffer): PlainPages {
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
