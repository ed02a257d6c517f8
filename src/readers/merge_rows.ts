import type { FileHandle } from 'node:fs/promises';
import { deserialize, serialize } from 'node:v8';
import { compareKeys, type RowKey, type ComparedRow } from './row.ts';
import { openTemporaryFile } from './temporary_file.ts';

/** A row with its key. If it has values, its other fields are small. */
type MergedRow = RowKey & Partial<Pick<ComparedRow, 'values'>>;

/**
 * Maximum number of sequences that are read at the same time. Each holds a connection to the bucket and a block of rows, and a
 * manifest has one for each generation that added late rows.
 */
const maxOpenSequences = 4;

/** Bytes of the rows that are stored together, about. One batch of each stored sequence is in memory. */
const batchBytes = 128 * 1024;
/** Bytes of a row without its values, about. */
const keyBytes = 100;

/**
 * Merges sequences of rows, each in the order of its keys. If there are many, each is first read to its end and stored in a
 * temporary file, so that neither memory nor connections grow with their number.
 */
export async function* mergedByKey<Row extends MergedRow>(
  sequences: readonly AsyncGenerator<Row>[],
): AsyncGenerator<Row> {
  if (sequences.length <= maxOpenSequences) {
    yield* mergedHeads(sequences);
    return;
  }
  const handle = await openTemporaryFile();
  try {
    const stored: AsyncGenerator<Row>[] = [];
    let end = 0;
    for (const sequence of sequences) {
      const batches = await storeRows(handle, end, sequence);
      end = batches.at(-1)?.end ?? end;
      stored.push(readStored(handle, batches));
    }
    yield* mergedHeads(stored);
  } finally {
    await Promise.all(sequences.map((sequence) => sequence.return(undefined)));
    await handle.close();
  }
}

/** The next row of a sequence. */
interface Head<Row> {
  readonly row: Row;
  readonly position: number;
}

/** Memory holds one row of each sequence. */
async function* mergedHeads<Row extends MergedRow>(
  sequences: readonly AsyncGenerator<Row>[],
): AsyncGenerator<Row> {
  /** In the order of their keys, and of their sequences where keys are equal. */
  const heads: Head<Row>[] = [];
  const advance = async (position: number): Promise<void> => {
    const next = await sequences[position]?.next();
    if (!next || next.done === true) return;
    const row = next.value;
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = heads[middle];
      const order = other ? compareKeys(other.row, row) : 1;
      if (order < 0 || (order === 0 && other && other.position < position)) low = middle + 1;
      else high = middle;
    }
    heads.splice(low, 0, { row, position });
  };
  try {
    for (const position of sequences.keys()) await advance(position);
    for (let head = heads.shift(); head; head = heads.shift()) {
      yield head.row;
      await advance(head.position);
    }
  } finally {
    await Promise.all(sequences.map((sequence) => sequence.return(undefined)));
  }
}

/** Where rows that are stored together are in a file. */
interface Batch {
  readonly start: number;
  readonly end: number;
}

/** Appends rows to a file. @param at the end of the file */
async function storeRows(
  handle: FileHandle,
  at: number,
  rows: AsyncIterable<MergedRow>,
): Promise<readonly Batch[]> {
  const batches: Batch[] = [];
  let batch: MergedRow[] = [];
  let bytes = 0;
  const store = async (): Promise<void> => {
    const stored = serialize(batch);
    const start = batches.at(-1)?.end ?? at;
    await handle.write(stored, 0, stored.length, start);
    batches.push({ start, end: start + stored.length });
    batch = [];
    bytes = 0;
  };
  for await (const row of rows) {
    batch.push(row);
    bytes += keyBytes;
    for (const value of row.values ?? []) bytes += value?.length ?? 0;
    if (bytes >= batchBytes) await store();
  }
  if (batch.length > 0) await store();
  return batches;
}

async function* readStored<Row>(handle: FileHandle, batches: readonly Batch[]): AsyncGenerator<Row> {
  for (const { start, end } of batches) {
    const stored = Buffer.allocUnsafe(end - start);
    await handle.read(stored, 0, stored.length, start);
    // This process wrote it.
    yield* deserialize(stored) as Row[];
  }
}
