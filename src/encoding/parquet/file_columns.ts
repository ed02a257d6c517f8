import type { ColumnType, ExportedColumn } from '../../source/row_selection.ts';
import type { ColumnValues } from './field_index.ts';

/** The types of columns of a file. */
export type FileColumnType = Exclude<ColumnType, 'uuid'>;

/** A column of a file. */
export interface FileColumn extends Omit<ExportedColumn, 'type'> {
  readonly type: FileColumnType;
}

/** The values of a column of a file. */
export interface FileColumnValues extends Omit<ColumnValues, 'column'> {
  readonly column: FileColumn;
}

/**
 * The columns as a file has them. A uuid is its text: Spark opens no file with Parquet's type UUID, polars and pandas return it
 * as bytes.
 */
export const fileColumns = (columns: readonly ExportedColumn[]): readonly FileColumn[] =>
  columns.map(asFileColumn);

const asFileColumn = ({ type, ...column }: ExportedColumn): FileColumn => ({
  ...column,
  type: type === 'uuid' ? 'text' : type,
});

/** The values of a column as a file has them. `update` follows the index after it has advanced. */
interface WrittenValues {
  readonly values: FileColumnValues;
  readonly update: () => void;
}

/** Memory for the texts of a column, which the next block uses again. */
interface TextMemory {
  readonly block: Buffer;
  readonly view: DataView;
  readonly positions: Int32Array;
}

/** By the name of the column. */
const memories = new Map<string, TextMemory>();
/** Larger memory than this many rows need is used once. */
const maxRetainedRows = 100_000;

function memoryOf(name: string, rows: number): TextMemory {
  const retained = memories.get(name);
  if (retained && retained.positions.length >= rows) return retained;
  const block = Buffer.allocUnsafeSlow(rows * entryBytes).fill(emptyEntry);
  const positions = new Int32Array(rows);
  for (let index = 0; index < rows; index += 1) positions[index] = index * entryBytes;
  const memory = { block, view: new DataView(block.buffer), positions };
  if (rows <= maxRetainedRows) memories.set(name, memory);
  return memory;
}

/** Whether a file has the values as the index has them. */
const areInFile = (values: ColumnValues): values is ColumnValues & FileColumnValues =>
  values.column.type !== 'uuid';

/** The values of a column of at most `rows` rows as a file has them; see `fileColumns`. They are valid until the next block. */
export function writtenValues(values: ColumnValues, rows: number): WrittenValues {
  if (areInFile(values)) return { values, update: () => undefined };
  const { block, view, positions } = memoryOf(values.column.name, rows);
  const texts: FileColumnValues = {
    ...values,
    column: asFileColumn(values.column),
    block,
    view,
    positions,
    entryBytes,
  };
  return {
    values: texts,
    update: () => {
      for (let index = texts.count; index < values.count; index += 1)
        writeText(values.view, (values.positions[index] ?? 0) + 4, view, index * entryBytes + 4);
      texts.count = values.count;
    },
  };
}

/** A text with its length before it, like a field of a block, that lacks its digits. */
const emptyEntry = Buffer.from('\0\0\0$________-____-____-____-____________');
const entryBytes = emptyEntry.length;

/** The four hexadecimal digits of each two bytes. */
const digits = Int32Array.from({ length: 65_536 }, (_, bytes) =>
  Buffer.from(bytes.toString(16).padStart(4, '0')).readInt32BE(),
);

/** Writes the digits of a uuid between the hyphens of its text. */
function writeText(source: DataView, from: number, target: DataView, to: number): void {
  target.setInt32(to, digits[source.getUint16(from)] ?? 0);
  target.setInt32(to + 4, digits[source.getUint16(from + 2)] ?? 0);
  target.setInt32(to + 9, digits[source.getUint16(from + 4)] ?? 0);
  target.setInt32(to + 14, digits[source.getUint16(from + 6)] ?? 0);
  target.setInt32(to + 19, digits[source.getUint16(from + 8)] ?? 0);
  target.setInt32(to + 24, digits[source.getUint16(from + 10)] ?? 0);
  target.setInt32(to + 28, digits[source.getUint16(from + 12)] ?? 0);
  target.setInt32(to + 32, digits[source.getUint16(from + 14)] ?? 0);
}
