/** Rows in groups, as they leave the process that reads them. */
import { bounds, boundText } from '../config/bounds.ts';
import { lines } from './json_lines.ts';
import { type DescribedFile, readRows } from './read_rows.ts';
import { FileUnreadable, type RowKey, type RowShape } from './row.ts';

/** A file, and what is read of its rows. */
export interface RowsOfFile {
  readonly file: DescribedFile;
  readonly shape: RowShape;
}

/** Rows of a group, and its characters, about. */
const [maxRows, maxCharacters] = [1_000, 262_144];

export const readRowBatches = (
  { file, shape }: RowsOfFile,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<readonly RowKey[]> =>
  batchesOf(readRows(file, chunks, shape), ({ values }) =>
    values.reduce((sum, value) => sum + (value?.length ?? 0), 0),
  );

/** The keys of rejected rows, as src/export/rejected.ts writes them. The time of a row that could not be read is empty. */
export const readRejectedBatches = (
  _: null,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<readonly RowKey[]> => batchesOf(rejectedKeys(chunks), () => 0);

async function* rejectedKeys(chunks: AsyncIterable<Buffer>): AsyncGenerator<RowKey> {
  for await (const line of lines(chunks)) {
    const { id, row } = parsed(line) as { id?: unknown; row?: { _inserted_at?: unknown } | null };
    if (typeof id !== 'string') throw new FileUnreadable('a line has no id');
    const inserted_at = row?._inserted_at;
    yield { inserted_at: typeof inserted_at === 'string' ? inserted_at : '', id };
  }
}

function parsed(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString()) ?? {};
  } catch {
    throw new FileUnreadable('a line is not JSON');
  }
}

/** @param sizeOf the characters of a row beside its key */
async function* batchesOf<Row extends RowKey>(
  rows: AsyncIterable<Row>,
  sizeOf: (row: Row) => number,
): AsyncGenerator<readonly Row[]> {
  let batch: Row[] = [];
  let characters = 0;
  for await (const row of rows) {
    const key = row.id.length + row.inserted_at.length;
    if (key > bounds.rowKey.max)
      throw new FileUnreadable(`the key of a row has more than ${boundText(bounds.rowKey)}`);
    batch.push(row);
    characters += key + sizeOf(row);
    if (batch.length < maxRows && characters < maxCharacters) continue;
    yield batch;
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield batch;
}
