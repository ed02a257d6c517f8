import { DestinationError } from '../destination/destination.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { Model } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { bucketIntervals, type Fingerprint, type FingerprintBucket } from '../domain/fingerprint.ts';
import type { KeptRowsReader, RowHash } from '../domain/kept_rows.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { type CompletedFile, fileSequences } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { earlierGenerationsOf, type ExistingRun } from '../domain/run_state.ts';
import type { RowKey, RowRange, Source } from '../source/source.ts';
import { type Hash64, hashBytes } from '../source/hash_bytes.ts';
import { readForeignRows, readRejectedKeys } from '../readers/foreign_rows.ts';
import { mergedByKey } from '../readers/merge_rows.ts';
import type { DescribedFile } from '../readers/read_rows.ts';
import { type ComparedColumn, type ComparedRow, compareKeys, FileUnreadable } from '../readers/row.ts';
import { idColumns } from '../source/read_fingerprints.ts';

/**
 * Merges the keys of a manifest and of the source, both in order. Memory holds one key of each.
 * @param on `key` receives each key of the source, `missing` those of rows that only the manifest has, and `late` those of rows
 *   that only the source has. Where a row of the manifest has the same key, rows cannot be told apart, and it receives none.
 * @returns how many rows only the manifest has
 */
export async function mergeKeys(
  published: AsyncIterable<SortKey>,
  source: AsyncIterable<SortKey>,
  on: {
    readonly key: (key: SortKey) => void;
    readonly missing?: ((key: SortKey) => void) | undefined;
    readonly late?: (key: SortKey) => void;
  },
): Promise<number> {
  const keys = source[Symbol.asyncIterator]();
  const nextKey = async (): Promise<SortKey | undefined> => {
    const next = await keys.next();
    if (next.done) return undefined;
    on.key(next.value);
    return next.value;
  };
  let missing = 0;
  let previous: SortKey | undefined;
  const addLate = (key: SortKey): void => {
    if (!previous || compareKeys(previous, key) !== 0) on.late?.(key);
  };
  try {
    let key = await nextKey();
    for await (const publishedKey of published) {
      while (key && compareKeys(key, publishedKey) < 0) {
        addLate(key);
        key = await nextKey();
      }
      previous = publishedKey;
      // Each key of the source accounts for one row of the manifest.
      if (key && compareKeys(key, publishedKey) === 0) key = await nextKey();
      else {
        missing += 1;
        on.missing?.(publishedKey);
      }
    }
    while (key) {
      addLate(key);
      key = await nextKey();
    }
  } finally {
    await keys.return?.();
  }
  return missing;
}

/** Yields the keys of the source that were not published. Both are in order. Memory holds one key of each. */
export async function* keysNotPublished(
  source: AsyncIterable<RowKey>,
  published: AsyncIterable<RowKey>,
): AsyncGenerator<RowKey> {
  const keys = published[Symbol.asyncIterator]();
  try {
    let next = await keys.next();
    for await (const key of source) {
      while (!next.done && compareKeys(next.value, key) < 0) next = await keys.next();
      if (next.done || compareKeys(next.value, key) !== 0 || isOtherVersion(next.value, key)) yield key;
    }
  } finally {
    await keys.return?.();
  }
}

/** Whether two keys are of different states of a person, as far as their versions are known. */
const isOtherVersion = ({ version: one }: RowKey, { version: other }: RowKey): boolean =>
  one !== undefined && other !== undefined && one !== other;

/** Hashes keys of events like a fingerprint of their rows. */
export function createRowHasher(start: string, width_ms: number): (key: SortKey) => RowHash {
  const startMs = new Date(start).getTime();
  const hash: Hash64 = { high: 0, low: 0 };
  return ({ inserted_at, id }) => {
    const bytes = Buffer.from(id.replaceAll('-', ''), 'hex');
    hashBytes(bytes, 0, bytes.length, hash);
    return {
      index: Math.floor((Date.parse(inserted_at) - startMs) / width_ms),
      hash: (BigInt(hash.high) << 32n) | BigInt(hash.low),
    };
  };
}

/** Adds up keys of events by bucket, like a fingerprint of their rows. */
export function createBucketSums(start: string, width_ms: number) {
  const hashOf = createRowHasher(start, width_ms);
  const sums = new Map<number, { rows: number; sum: bigint }>();
  return {
    add: (key: SortKey): void => {
      const { index, hash } = hashOf(key);
      const bucket = sums.get(index) ?? { rows: 0, sum: 0n };
      bucket.rows += 1;
      bucket.sum += hash;
      sums.set(index, bucket);
    },
    /** The sums of the given buckets, by default of all with keys; those without keys have no rows. */
    bucketsAt: (indexes: readonly number[] = [...sums.keys()]): Map<number, FingerprintBucket> =>
      new Map(
        indexes.map((index) => {
          const { rows, sum } = sums.get(index) ?? { rows: 0, sum: 0n };
          return [index, { index, rows, sum: BigInt.asUintN(64, sum).toString() }];
        }),
      ),
  };
}

/** Reads the rows of events that the source has in some buckets of a fingerprint. */
export const createSourceRowReader = (
  { source, signal }: { readonly source: Pick<Source, 'keys'>; readonly signal: AbortSignal },
  range: RowRange,
  fingerprint: Pick<Fingerprint, 'width_ms'>,
): KeptRowsReader['sourceRows'] =>
  async function* sourceRows(indexes) {
    const hashOf = createRowHasher(range.interval.start, fingerprint.width_ms);
    for (const interval of bucketIntervals(range.interval, fingerprint, indexes))
      for await (const key of source.keys({ ...range, interval }, signal)) yield hashOf(key);
  };

/** The keys of a manifest's rows cannot be read. The message says why, as the end of a sentence. */
export class KeysUnreadable extends Error {
  override readonly name = 'KeysUnreadable';
}

/** Where and which keys are read. */
interface ExportedKeysOptions {
  readonly location: Pick<Destination, 'openObject' | 'nameOf' | 'foreign'>;
  /** Ranges of insertion time, in order. Other keys are left out. */
  readonly ranges: readonly DataInterval[];
  /** Called for each row that is read. */
  readonly onRow: () => void;
  /** Called for an object that no longer exists. It holds no rows that could be lost. */
  readonly onAbsent: (key: string) => Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * Reads the sort keys of the rows that a run exported, rejected ones included, in order. Only files whose key range
 * touches a range are read, each once. Memory holds one row, or one block in formats with blocks.
 * @throws KeysUnreadable when they cannot be read for good; DestinationError when they may be read later
 */
export async function* readExportedKeys(
  run: Pick<ExistingRun, 'spec' | 'rejected_file'>,
  completed: readonly CompletedFile[],
  options: ExportedKeysOptions,
): AsyncGenerator<RowKey> {
  const ranges = options.ranges.map(({ start, end }) => ({
    start: withMicroseconds(start),
    end: withMicroseconds(end),
  }));
  const files = completed.filter(({ first, last }) =>
    ranges.some(({ start, end }) => first && last && last.inserted_at >= start && first.inserted_at < end),
  );
  const keys = mergedByKey<RowKey>([
    ...fileSequences(files).map((sequence) => readFiles(sequence, options, fileKeysOf(run.spec.model))),
    ...(run.rejected_file ? [readFiles([run.rejected_file], options, rejectedKeys)] : []),
  ]);
  let previous: SortKey | undefined;
  for await (const key of readable(keys)) {
    options.onRow();
    if (previous && compareKeys(previous, key) > 0) throw new KeysUnreadable('its rows are not sorted');
    previous = key;
    if (ranges.some(({ start, end }) => key.inserted_at >= start && key.inserted_at < end)) yield key;
  }
}

/** Keys have microseconds, and buckets milliseconds. */
const withMicroseconds = (time: string): string => time.replace('Z', '000Z');

/** Whether keys cannot be read, however often it is tried. Opening a location throws the last two. */
export const areKeysUnreadable = (error: unknown): error is Error =>
  error instanceof KeysUnreadable ||
  error instanceof CommandRejected ||
  (error instanceof DestinationError && !error.transient);

type ReadKeys = (
  files: Parameters<typeof readForeignRows>[0],
  file: DescribedFile,
  chunks: AsyncIterable<Buffer>,
) => AsyncGenerator<RowKey>;

async function* readFiles(
  files: readonly DescribedFile[],
  { location, onAbsent, signal }: Omit<ExportedKeysOptions, 'ranges' | 'onRow'>,
  read: ReadKeys,
): AsyncGenerator<RowKey> {
  const of = { foreign: location.foreign, signal };
  for (const file of files) {
    const object = await location.openObject(file.key, signal);
    if (!object) await onAbsent(file.key);
    else if (object.bytes === file.bytes) yield* read(of, file, object.chunks);
    else {
      object.close();
      throw new FileUnreadable(`${file.key} has ${object.bytes} bytes, expected ${file.bytes}`);
    }
  }
}

const fileKeysOf = (model: Model): ReadKeys =>
  async function* fileKeys(of, file, chunks) {
    const shape = { id: idColumns[model], columns: model === 'persons' ? versionColumns : [] };
    for await (const { inserted_at, id, values } of readForeignRows(of, file, chunks, shape))
      yield { inserted_at, id, version: versionOf(values) };
  };

const versionColumns: readonly ComparedColumn[] = [
  { name: 'person_distinct_id_version', type: 'bigint' },
  { name: 'person_version', type: 'bigint' },
];

/** Undefined if the file lacks a version. */
function versionOf([mapping, person]: ComparedRow['values']): string | undefined {
  if (mapping === undefined || person === undefined) return undefined;
  return `${mapping ?? ''}/${person ?? ''}`;
}

/**
 * Reads the sort keys in whole files of a run's earlier generations. An object that no longer exists has none.
 * @throws as `readExportedKeys`
 */
export async function* readEarlierKeys(
  run: Pick<ExistingRun, 'spec' | 'phase'>,
  options: Pick<ExportedKeysOptions, 'location' | 'signal'>,
): AsyncGenerator<RowKey> {
  const onAbsent = (): Promise<void> => Promise.resolve();
  yield* readable(
    readFiles(earlierGenerationsOf(run).earlier, { ...options, onAbsent }, fileKeysOf(run.spec.model)),
  );
}

/** Passes keys through. @throws KeysUnreadable instead of an error that stays */
async function* readable(keys: AsyncGenerator<RowKey>): AsyncGenerator<RowKey> {
  try {
    yield* keys;
  } catch (error) {
    if (error instanceof FileUnreadable) throw new KeysUnreadable(`an object is damaged: ${error.message}`);
    if (error instanceof DestinationError && !error.transient) throw new KeysUnreadable(error.message);
    throw error;
  }
}

const rejectedKeys: ReadKeys = async function* rejectedKeys(of, _, chunks) {
  for await (const key of readRejectedKeys(of, chunks)) {
    if (key.inserted_at === '') throw new KeysUnreadable('a rejected row has no _inserted_at');
    yield key;
  }
};
