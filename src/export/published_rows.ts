import { createHash } from 'node:crypto';
import type { Destination } from '../destination/open_destination.ts';
import { eventPartitionOf } from '../destination/keys.ts';
import type { Model } from '../domain/batch_export.ts';
import {
  type CompletedFile,
  type ExportedFile,
  fileSequences,
  type SortKey,
} from '../domain/exported_files.ts';
import { bucketWidthMs, type Fingerprint, fingerprintHashOf } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import { type FingerprintSum, startFingerprint } from '../encoding/fingerprint_rows.ts';
import { idColumns } from '../source/read_ranges.ts';
import type { ColumnType, ExportedColumn } from '../source/row_selection.ts';
import type { FingerprintPlan, KeyBounds, ReadOptions, RowBlock } from '../source/source.ts';
import { lines } from '../verify/files/json_lines.ts';
import { mergedByKey } from '../verify/files/merge_rows.ts';
import { readRows } from '../verify/files/read_rows.ts';
import { compareKeys, FileUnreadable, type RowShape, type VerifiedRow } from '../verify/row.ts';

type PublishedFile = Pick<CompletedFile, 'key' | 'rows' | 'bytes' | 'first' | 'last' | 'generation'>;

/** What is published of an interval, and where. */
interface PublishedFiles {
  readonly spec: Pick<ExistingRun['spec'], 'model' | 'data_interval_start' | 'data_interval_end'>;
  readonly files: readonly PublishedFile[];
  readonly rejected_file: Pick<ExportedFile, 'key' | 'rows' | 'bytes'> | null;
  readonly location: Pick<Destination, 'openObject' | 'nameOf'>;
  /** The columns of the files. */
  readonly columns: readonly ExportedColumn[];
}

/** What a search of published files has found. */
interface SearchedRows {
  /** Rows that were read, and how many of them are of erased persons; rejected ones are among both. */
  readonly rows: number;
  readonly erased_rows: number;
  /** The rows of erased persons in the files, and in the file of rejected rows. */
  readonly erased: Fingerprint;
  readonly rejected_erased: Fingerprint;
}

/** An object that a manifest names does not exist. */
export class ObjectAbsent extends FileUnreadable {}

/** What a run of an erasure reads. */
export interface OpenedErasure {
  readonly replaced: ReplacedRun;
  readonly rows: PublishedRows;
  /** Distinct ids. */
  readonly erased: ReadonlySet<string>;
  readonly close: () => void;
}

/** The rows of published files in the order of their keys, without those of erased persons. */
export type PublishedRows = ReturnType<typeof openPublishedRows>;

const lineFeed = Buffer.from('\n');

/** Rows of a search that are fingerprinted at once. */
const maxBufferedRows = 10_000;

/**
 * Reads the files of a manifest with the readers of `verify`, as nothing else has the rows: the source may have lost or changed
 * them. Memory holds a row, or a block of the format, and a block of rows.
 * @param erased distinct ids
 */
export function openPublishedRows(published: PublishedFiles, erased: ReadonlySet<string>) {
  const { spec, files, rejected_file, location, columns } = published;
  const { model } = spec;
  const idName = idColumns[model];
  const interval = { start: spec.data_interval_start, end: spec.data_interval_end };
  const positionOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const plan: FingerprintPlan = {
    hash: fingerprintHashOf(model),
    width_ms: bucketWidthMs(interval),
    origin: interval.start,
    inserted_at: positionOf('_inserted_at'),
    id: positionOf(idName),
  };
  const personColumn = { name: 'distinct_id', type: 'text' };

  async function* chunksOf(
    file: Pick<ExportedFile, 'key' | 'bytes'>,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const object = await location.openObject(file.key, signal);
    if (!object) throw new ObjectAbsent(`${location.nameOf(file.key)} does not exist`);
    if (object.bytes !== file.bytes) {
      object.close();
      throw new FileUnreadable(
        `${location.nameOf(file.key)} has ${object.bytes} bytes, expected ${file.bytes}`,
      );
    }
    yield* object.chunks;
  }

  async function* sequenceOf(
    sequence: readonly PublishedFile[],
    shape: RowShape,
    signal: AbortSignal,
  ): AsyncGenerator<VerifiedRow> {
    for (const file of sequence) {
      let rows = 0;
      for await (const row of readRows(file, chunksOf(file, signal), shape)) {
        rows += 1;
        yield row;
      }
      if (rows !== file.rows)
        throw new FileUnreadable(`${location.nameOf(file.key)} has ${rows} rows, expected ${file.rows}`);
    }
  }

  const rowsWith = (
    of: readonly PublishedFile[],
    shaped: RowShape['columns'],
    signal: AbortSignal,
  ): AsyncGenerator<VerifiedRow> => {
    const shape = { id: idName, columns: shaped, whole: true } as const;
    return mergedByKey(fileSequences(of).map((sequence) => sequenceOf(sequence, shape, signal)));
  };

  const personOf = ({ values }: VerifiedRow, position: number): string => {
    const person = values[position];
    if (person === undefined) throw new FileUnreadable('a file has no column distinct_id');
    return person ?? '';
  };

  /** The lines of the file of rejected rows, and whether each is of an erased person. */
  async function* rejectedLines(
    signal: AbortSignal,
  ): AsyncGenerator<{ readonly line: Buffer; readonly isErased: boolean; readonly key: SortKey }> {
    if (!rejected_file) return;
    for await (const line of lines(chunksOf(rejected_file, signal))) {
      const { id, row } = JSON.parse(line.toString()) as {
        id: string;
        row: { _inserted_at?: unknown; distinct_id?: unknown };
      };
      if (typeof row._inserted_at !== 'string' || typeof row.distinct_id !== 'string')
        throw new FileUnreadable(
          `${location.nameOf(rejected_file.key)} has a row without _inserted_at or distinct_id`,
        );
      yield { line, isErased: erased.has(row.distinct_id), key: { inserted_at: row._inserted_at, id } };
    }
  }

  return {
    /** Counts the rows of erased persons, also in the file of rejected rows. @throws FileUnreadable, DestinationError */
    search: async (signal: AbortSignal, onRow: () => void): Promise<SearchedRows> => {
      const [found, rejected] = [createKeySum(plan, model), createKeySum(plan, model)];
      let rows = 0;
      for await (const row of rowsWith(files, [personColumn], signal)) {
        rows += 1;
        onRow();
        if (erased.has(personOf(row, 0))) found.add(row);
      }
      for await (const { isErased, key } of rejectedLines(signal)) {
        rows += 1;
        onRow();
        if (isErased) rejected.add(key);
      }
      return {
        rows,
        erased_rows: found.rows() + rejected.rows(),
        erased: found.result(),
        rejected_erased: rejected.result(),
      };
    },

    /** The blocks of the rows that stay, as `Source.blocks` returns those of a source. @param event of one partition */
    async *blocks(
      { after, until, event }: KeyBounds & { readonly event?: string | undefined },
      { blockBytes, signal, memory }: ReadOptions,
    ): AsyncGenerator<RowBlock> {
      const person = positionOf('distinct_id');
      const touching = files.filter(
        ({ key, first, last }) =>
          (event === undefined || eventPartitionOf(key) === event) &&
          (!after || !last || compareKeys(last, after) > 0) &&
          (!until || !first || compareKeys(first, until) <= 0),
      );
      let tuples: Buffer[] = [];
      let bytes = 0;
      let [first, last]: (SortKey | null)[] = [null, null];
      const take = async (): Promise<RowBlock | null> => {
        if (!first || !last) return null;
        // With a separate buffer, which can be transferred to a thread.
        const block = Buffer.allocUnsafeSlow(bytes);
        let at = 0;
        for (const tuple of tuples) at += tuple.copy(block, at);
        const taken = { columns, block, rows: tuples.length, first, last, fingerprint: plan };
        tuples = [];
        bytes = 0;
        first = null;
        await memory?.reserveRows(block.length, signal);
        return taken;
      };
      for await (const row of rowsWith(touching, columns, signal)) {
        if (after && compareKeys(row, after) <= 0) continue;
        if (until && compareKeys(row, until) > 0) break;
        if (erased.has(personOf(row, person))) continue;
        // A block never ends between rows with equal keys.
        if (bytes >= blockBytes && last && compareKeys(row, last) !== 0) {
          const block = await take();
          if (block) yield block;
        }
        const tuple = tupleOf(row.values, columns);
        const key = { inserted_at: row.inserted_at, id: row.id };
        tuples.push(tuple);
        bytes += tuple.length;
        first ??= key;
        last = key;
      }
      const block = await take();
      if (block) yield block;
    },

    /** The lines of the file of rejected rows that stay. */
    rejected: async (
      signal: AbortSignal,
    ): Promise<{ readonly bytes: Buffer; readonly rows: number; readonly fingerprint: Fingerprint }> => {
      const kept: Buffer[] = [];
      const sum = createKeySum(plan, model);
      for await (const { line, isErased, key } of rejectedLines(signal)) {
        if (isErased) continue;
        kept.push(Buffer.concat([line, lineFeed]));
        sum.add(key);
      }
      return { bytes: Buffer.concat(kept), rows: kept.length, fingerprint: sum.result() };
    },

    /**
     * A sum over all values of all rows that stay, whatever their order and their files: equal sums are of equal rows. It is
     * independent of the encoders.
     */
    contents: async (signal: AbortSignal, onRow: () => void): Promise<string> => {
      const person = positionOf('distinct_id');
      let rows = 0;
      let sum = 0n;
      for await (const row of rowsWith(files, columns, signal)) {
        onRow();
        if (erased.has(personOf(row, person))) continue;
        rows += 1;
        sum += createHash('sha256').update(JSON.stringify(row.values)).digest().readBigUInt64BE(0);
      }
      return `${rows}/${BigInt.asUintN(64, sum)}`;
    },
  };
}

/** Adds up the hashes of keys. */
function createKeySum(plan: FingerprintPlan, model: Model) {
  const sum: FingerprintSum = startFingerprint({ ...plan, inserted_at: 0, id: 1 });
  let tuples: Buffer[] = [];
  let rows = 0;
  const columns = [
    { name: 'inserted_at', type: 'timestamp' },
    { name: 'id', type: model === 'events' ? 'uuid' : 'text' },
  ] as const;
  const flush = (): void => {
    const block = Buffer.concat(tuples);
    sum.add(block, 0, block.length);
    tuples = [];
  };
  return {
    add: ({ inserted_at, id }: SortKey): void => {
      tuples.push(tupleOf([inserted_at, id], columns));
      rows += 1;
      if (tuples.length >= maxBufferedRows) flush();
    },
    rows: () => rows,
    result: (): Fingerprint => {
      flush();
      return sum.result();
    },
  };
}

/** A row as a tuple of binary COPY (see `RowBlock`), from the texts that the readers of files return. */
function tupleOf(values: VerifiedRow['values'], columns: readonly ExportedColumn[]): Buffer {
  const count = Buffer.alloc(2);
  count.writeInt16BE(columns.length);
  const parts: Buffer[] = [count];
  for (const [position, { name, type }] of columns.entries()) {
    const value = values[position];
    if (value === undefined) throw new FileUnreadable(`a file has no column ${name}`);
    const length = Buffer.alloc(4);
    const bytes = value === null ? null : binaryOf[type](value);
    length.writeInt32BE(bytes ? bytes.length : -1);
    parts.push(length);
    if (bytes) parts.push(bytes);
  }
  return Buffer.concat(parts);
}

const epochUs = 946_684_800_000_000n;
const epochDays = 10_957;
const dayMs = 86_400_000;
const isWholeNumber = /^-?\d+$/;

/** Microseconds since 1970: of ISO 8601 in UTC, or as a number if other formats cannot represent it. */
function microsecondsOf(text: string): bigint {
  if (isWholeNumber.test(text)) return BigInt(text);
  const [, seconds = '', fraction = ''] = /^(.{19})(?:\.(\d{1,6}))?Z$/.exec(text) ?? [];
  const ms = Date.parse(`${seconds}Z`);
  if (Number.isNaN(ms)) throw new FileUnreadable('a time is not in ISO 8601');
  return BigInt(ms) * 1_000n + BigInt(fraction.padEnd(6, '0'));
}

const sized = (bytes: number, write: (target: Buffer) => void): Buffer => {
  const target = Buffer.alloc(bytes);
  write(target);
  return target;
};

const binaryOf: Readonly<Record<ColumnType, (text: string) => Buffer>> = {
  uuid: (text) => Buffer.from(text.replaceAll('-', ''), 'hex'),
  text: (text) => Buffer.from(text),
  json: (text) => Buffer.from(text),
  timestamp: (text) => sized(8, (to) => to.writeBigInt64BE(microsecondsOf(text) - epochUs)),
  date: (text) =>
    sized(4, (to) => {
      const days = isWholeNumber.test(text) ? Number(text) : Date.parse(`${text}T00:00:00Z`) / dayMs;
      to.writeInt32BE(days - epochDays);
    }),
  bigint: (text) => sized(8, (to) => to.writeBigInt64BE(BigInt(text))),
  integer: (text) => sized(4, (to) => to.writeInt32BE(Number(text))),
  double: (text) => sized(8, (to) => to.writeDoubleBE(Number(text))),
  boolean: (text) => sized(1, (to) => to.writeUInt8(text === 'true' || text === 't' ? 1 : 0)),
};
