/** Rows of files in the bucket of an export, which are read by a process of their own. */
import {
  type ForeignBytes,
  ForeignBytesRefused,
  ForeignBytesTooCostly,
  type ForeignReader,
} from '../foreign_bytes/foreign_bytes.ts';
import type { RowsOfFile } from './row_batches.ts';
import { type ComparedRow, FileUnreadable, KeysMissing, type RowKey, type RowShape } from './row.ts';
import type { DescribedFile } from './read_rows.ts';

const rowsReader: ForeignReader<RowsOfFile, ComparedRow> = { name: 'rows of a file' };
const rejectedReader: ForeignReader<null, RowKey> = { name: 'keys of rejected rows' };

/** Objects of a bucket, and what ends the wait for a process. */
interface ForeignFiles {
  readonly foreign: ForeignBytes;
  readonly signal: AbortSignal;
}

/** Reads the rows of a file of any format. @throws FileUnreadable, and errors of `chunks` */
export const readForeignRows = (
  { foreign, signal }: ForeignFiles,
  file: DescribedFile,
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<ComparedRow> => {
  const { key, rows, bytes } = file;
  return readable(foreign.read(rowsReader, { file: { key, rows, bytes }, shape }, chunks, signal));
};

/** Reads the keys of the rows that a run rejected. @throws FileUnreadable, and errors of `chunks` */
export const readRejectedKeys = (
  { foreign, signal }: ForeignFiles,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<RowKey> => readable(foreign.read(rejectedReader, null, chunks, signal));

/** Passes rows through, and gives errors their class again. */
async function* readable<Row>(rows: AsyncGenerator<Row>): AsyncGenerator<Row> {
  try {
    yield* rows;
  } catch (error) {
    if (error instanceof ForeignBytesTooCostly) throw new FileUnreadable(`it ${error.message}`);
    if (!(error instanceof ForeignBytesRefused)) throw error;
    const { type, message } = error.error;
    if (type === 'KeysMissing') throw new KeysMissing(message);
    throw type === 'FileUnreadable' ? new FileUnreadable(message) : error;
  }
}
