import { DestinationError, type Destination } from '../../destination/destination.ts';
import { CommandRejected } from '../../domain/errors.ts';
import type { DataInterval } from '../../domain/intervals.ts';
import type { CompletedFile, ExistingRun, SortKey } from '../../domain/run.ts';
import { readRows } from '../../verify/files/read_rows.ts';
import { FileUnreadable } from '../../verify/row.ts';
import { compareSortKeys } from './compare_keys.ts';

/** The keys of a manifest's rows cannot be read. The message says why, as the end of a sentence. */
export class KeysUnreadable extends Error {
  override readonly name = 'KeysUnreadable';
}

/** Where and which keys are read. */
export interface HeldKeysOptions {
  readonly location: Pick<Destination, 'openObject' | 'nameOf'>;
  /** Ranges of insertion time, in order. Other keys are left out. */
  readonly ranges: readonly DataInterval[];
  /** Called for each row that is read. */
  readonly onRow: () => void;
  /** Called for an object that no longer exists. It holds no rows that could be lost. */
  readonly onAbsent: (key: string) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Reads the sort keys of the events that a run exported, rejected ones included, in order. Only files whose key range
 * touches a range are read, each once. Memory holds one row, or one block in formats with blocks.
 * @throws KeysUnreadable when they cannot be read for good; DestinationError when they may be read later
 */
export async function* readHeldKeys(
  run: Pick<ExistingRun, 'rejected_file'>,
  completed: readonly CompletedFile[],
  options: HeldKeysOptions,
): AsyncGenerator<SortKey> {
  const ranges = options.ranges.map(({ start, end }) => ({
    start: withMicroseconds(start),
    end: withMicroseconds(end),
  }));
  const files = completed.filter(({ first, last }) =>
    ranges.some(({ start, end }) => first && last && last.inserted_at >= start && first.inserted_at < end),
  );
  const keys = mergeInOrder(
    readFiles(
      files.map(({ key }) => key),
      options,
      fileKeys,
    ),
    readFiles(run.rejected_file ? [run.rejected_file.key] : [], options, rejectedKeys),
  );
  let previous: SortKey | undefined;
  try {
    for await (const key of keys) {
      options.onRow();
      if (previous && compareSortKeys(previous, key) > 0) throw new KeysUnreadable('its rows are not sorted');
      previous = key;
      if (ranges.some(({ start, end }) => key.inserted_at >= start && key.inserted_at < end)) yield key;
    }
  } catch (error) {
    if (error instanceof FileUnreadable) throw new KeysUnreadable(`an object is damaged: ${error.message}`);
    if (error instanceof DestinationError && !error.transient) throw new KeysUnreadable(error.message);
    throw error;
  }
}

/** Keys have microseconds, and buckets milliseconds. */
const withMicroseconds = (time: string): string => time.replace('Z', '000Z');

/** Whether keys cannot be read, however often it is tried. Opening a location throws the last two. */
export const areKeysUnreadable = (error: unknown): error is Error =>
  error instanceof KeysUnreadable ||
  error instanceof CommandRejected ||
  (error instanceof DestinationError && !error.transient);

type ReadKeys = (key: string, chunks: AsyncIterable<Buffer>) => AsyncGenerator<SortKey>;

async function* readFiles(
  keys: readonly string[],
  { location, onAbsent, signal }: HeldKeysOptions,
  read: ReadKeys,
): AsyncGenerator<SortKey> {
  for (const key of keys) {
    const object = await location.openObject(key, signal);
    if (object) yield* read(key, object.chunks);
    else await onAbsent(key);
  }
}

async function* fileKeys(key: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<SortKey> {
  for await (const { inserted_at, id } of readRows(key, chunks, { id: 'uuid', columns: [] }))
    yield { inserted_at, id };
}

async function* rejectedKeys(_: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<SortKey> {
  for await (const line of linesOf(chunks)) {
    // exportd wrote the file; see src/export/rejected_file.ts.
    const { id, row } = JSON.parse(line) as { id: string; row: { _inserted_at?: unknown } };
    if (typeof row._inserted_at !== 'string') throw new KeysUnreadable('a rejected row has no _inserted_at');
    yield { inserted_at: row._inserted_at, id };
  }
}

async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      yield Buffer.concat([...rest, chunk.subarray(from, end)]).toString();
      rest = [];
      from = end + 1;
    }
    rest.push(chunk.subarray(from));
  }
}

async function* mergeInOrder(
  one: AsyncGenerator<SortKey>,
  other: AsyncGenerator<SortKey>,
): AsyncGenerator<SortKey> {
  try {
    let left = await one.next();
    let right = await other.next();
    while (!left.done || !right.done) {
      const takeLeft = !left.done && (right.done === true || compareSortKeys(left.value, right.value) <= 0);
      if (takeLeft && !left.done) {
        yield left.value;
        left = await one.next();
      } else if (!right.done) {
        yield right.value;
        right = await other.next();
      }
    }
  } finally {
    await Promise.all([one.return(undefined), other.return(undefined)]);
  }
}
