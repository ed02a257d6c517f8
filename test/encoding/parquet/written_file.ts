import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { parquetMetadata, parquetReadObjects, type FileMetaData } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { UnrepresentableValue } from '../../../src/encoding/rows.ts';
import type { ParquetCompression } from '../../../src/encoding/encoder.ts';
import { parquetFooter, parquetHeader } from '../../../src/encoding/parquet/file.ts';
import { joinRowGroup, type EncodedRowGroup } from '../../../src/encoding/parquet/join_row_group.ts';
import {
  encodeFragment,
  type EncodedFragment,
  type PageOptions,
} from '../../../src/encoding/parquet/row_group.ts';
import { type ExportedColumn, fileColumns } from '../../../src/source/row_selection.ts';
import { copyBlock } from '../copy_block.ts';
import { startDuckDb, type IndependentReader, type RowTexts } from '../duckdb.ts';
import { bytesOf, type SampleRow } from './samples.ts';

/** Encodes a block without unrepresentable values. */
export const fragmentOf = (
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  rows: readonly SampleRow[],
): EncodedFragment =>
  encodeFragment(copyBlock(rows.map(bytesOf)), rows.length, columns, { compression }, throwUnrepresentable);

/** Encodes rows as one block, and that as a row group. */
export const rowGroupOf = (
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  rows: readonly SampleRow[],
): EncodedRowGroup =>
  joinRowGroup([fragmentOf(columns, compression, rows)], fileColumns(columns), { compression });

/** Encodes a block as a row group. */
export function encodeRowGroup(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  options: PageOptions,
  onUnrepresentable: (bad: UnrepresentableValue) => void,
): EncodedRowGroup {
  const fragment = encodeFragment(block, rows, columns, options, onUnrepresentable);
  return joinRowGroup([fragment], fileColumns(columns), options);
}

function throwUnrepresentable({ column, reason }: UnrepresentableValue): never {
  throw new Error(`The column ${column} ${reason}.`);
}

/** Joins row groups to a file, with a footer from journaled states. */
export function fileOf(
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  groups: readonly EncodedRowGroup[],
): Buffer<ArrayBuffer> {
  const journalled = JSON.stringify(groups.map(({ rowGroup }) => rowGroup));
  return Buffer.concat([
    parquetHeader(),
    ...groups.map(({ bytes }) => bytes),
    parquetFooter(columns, compression, JSON.parse(journalled) as EncodedRowGroup['rowGroup'][]),
  ]);
}

const memoryOf = (file: Buffer<ArrayBuffer>): ArrayBuffer =>
  file.buffer.slice(file.byteOffset, file.byteOffset + file.length);

export const metadataOf = (file: Buffer<ArrayBuffer>): FileMetaData => parquetMetadata(memoryOf(file));

/** Reads all values with hyparquet as strings; times in microseconds since 1970. */
export async function readWithHyparquet(
  file: Buffer<ArrayBuffer>,
  columns: readonly ExportedColumn[],
): Promise<RowTexts[]> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const decode = (bytes: Uint8Array): string => decoder.decode(bytes);
  const objects = await parquetReadObjects({
    file: memoryOf(file),
    compressors,
    parsers: {
      timestampFromMicroseconds: (microseconds) => microseconds,
      dateFromDays: (days) => days,
      stringFromBytes: decode,
      jsonFromBytes: decode,
    },
  });
  return objects.map((row) =>
    columns.map(({ name }) => (row[name] === null || row[name] === undefined ? null : String(row[name]))),
  );
}

/** Reads a file with DuckDB as `readWithHyparquet` does. */
type ReadWithDuckDb = (file: Buffer, columns: readonly ExportedColumn[]) => Promise<RowTexts[]>;

/** Starts DuckDB before the tests of the calling file, and stops it and deletes the files it read after them. */
export function useDuckDb(): ReadWithDuckDb {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-parquet-'));
  let duckDb: IndependentReader;
  let written = 0;
  beforeAll(async () => {
    duckDb = await startDuckDb();
  });
  afterAll(() => {
    duckDb.close();
    rmSync(folder, { recursive: true });
  });
  return (file, columns) => {
    written += 1;
    const path = join(folder, `${written}.parquet`);
    writeFileSync(path, file);
    return duckDb.parquet(path, columns);
  };
}
