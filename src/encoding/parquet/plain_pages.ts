import { reserve, type GrowingBuffer } from '../growing_buffer.ts';
import type { ColumnValues } from './column_values.ts';
import {
  definitionLevels,
  definitionLevelsBound,
  pageBytes,
  rowsWith,
  writeDataPage,
  type PageWriter,
} from './page_writer.ts';
import { appendPlain, type NumberRange } from './plain.ts';

/** A column's pages in the encoding PLAIN. */
export interface PlainPages {
  /** The smallest and the largest value so far. */
  readonly range: NumberRange;
  /** Writes the values that are not written yet, up to the value `until`; a page is compressed as soon as it is full. */
  take(until: number): void;
  /** Writes what is left. */
  finish(rows: number): void;
}

/** Begins the pages of a column. The page that is being filled lies in `page`. */
export function createPlainPages(values: ColumnValues, writer: PageWriter, page: GrowingBuffer): PlainPages {
  const range: NumberRange = { min: Infinity, max: -Infinity };
  let value = 0;
  let pageValue = 0;
  let pageRow = 0;
  let valuesAt = 0;

  // Levels stand in front of the values, but their size is only known when the page has ended.
  const beginPage = (): void => {
    pageValue = value;
    valuesAt = definitionLevelsBound(values.present.length - pageRow);
    page.length = 0;
    reserve(page, valuesAt);
    page.length = valuesAt;
  };

  const endPage = (untilRow: number): void => {
    const levels = definitionLevels(values.present.subarray(pageRow, untilRow));
    const from = valuesAt - levels.length;
    page.bytes.set(levels, from);
    writeDataPage(writer, page.bytes.subarray(from, page.length), untilRow - pageRow, 'PLAIN');
    pageRow = untilRow;
    beginPage();
  };

  beginPage();
  return {
    range,
    take(until) {
      while (value < until) {
        value = appendPlain(page, values, value, until, valuesAt + pageBytes, range);
        if (page.length >= valuesAt + pageBytes)
          endPage(rowsWith(values.present, pageRow, value - pageValue));
      }
    },
    finish(rows) {
      this.take(values.count);
      if (pageRow < rows) endPage(rows);
    },
  };
}
