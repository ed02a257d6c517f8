import type { JsonValue } from '../domain/event.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { libraryVersion } from './compression.ts';
import type { EncodedBlock, EncoderState, EncodingOptions, FileAssembly, FileEncoder } from './encoder.ts';
import { parquetFooter, parquetHeader, parquetIdentity } from './parquet/file.ts';
import { parseRowGroup, type RowGroup } from './parquet/row_group_state.ts';

/**
 * Joins row groups and writes the footer. The state of a part is the list of its row groups, so that another attempt
 * can write the footer.
 */
function assembleParquet(
  columns: readonly ExportedColumn[],
  { compression }: ParquetOptions,
  resumed: readonly EncoderState[],
): FileAssembly {
  const rowGroups = resumed.flatMap(parseRowGroups);
  let started = resumed.length > 0;
  let taken = rowGroups.length;
  let lastBlockHasRows = false;

  /** The file header, before the first block only. */
  const start = (): Buffer[] => {
    if (started) return [];
    started = true;
    return [parquetHeader()];
  };

  return {
    append(block: EncodedBlock) {
      const rowGroup = parseRowGroup(block.state);
      // A block may consist of rejected rows only.
      lastBlockHasRows = rowGroup.rows > 0;
      if (lastBlockHasRows) rowGroups.push(rowGroup);
      const header = start();
      // All blocks but the first are appended as they are: a copy would keep the original in memory as well.
      return Promise.resolve(header.length === 0 ? block.bytes : Buffer.concat([...header, block.bytes]));
    },
    takeState({ exceptLast } = { exceptLast: false }) {
      const end = exceptLast && lastBlockHasRows ? rowGroups.length - 1 : rowGroups.length;
      const state: readonly JsonValue[] = rowGroups.slice(taken, end);
      taken = end;
      return state;
    },
    finish: () =>
      Promise.resolve(Buffer.concat([...start(), parquetFooter(columns, compression, rowGroups)])),
    close: () => undefined,
  };
}

/** Parses the row groups of a part. @throws TypeError when the state is not a list of row groups */
function parseRowGroups(state: EncoderState): RowGroup[] {
  if (!Array.isArray(state)) throw new TypeError('The state of a part is not a list of Parquet row groups.');
  return state.map((rowGroup: JsonValue) => parseRowGroup(rowGroup));
}

export type ParquetOptions = Extract<EncodingOptions, { file_format: 'Parquet' }>;

/** Block size in bytes of rows. */
const blockBytes = 8 * 1024 * 1024;

/** The encoder of Parquet files, without the encoding of blocks, which runs in threads. */
export const parquetEncoder = (
  options: ParquetOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode' | 'grouping'> => ({
  identity: `${parquetIdentity(options)}${libraryVersion(options.compression)}`,
  extension: 'parquet',
  contentType: 'application/vnd.apache.parquet',
  resumable: true,
  blockBytes,
  assemble: (resumed) => assembleParquet(columns, options, resumed),
});

/**
 * A row group ends with the block that reaches one of these: the size of row groups in DuckDB, and of Parquet for Java. It
 * can have a whole block more, which `bounds.parquetRows` allows.
 */
const maxRows = 122_880;
const maxBytes = 64 * 1024 * 1024;

/** Whether the blocks are enough for a row group. */
export function isRowGroup(blocks: readonly Pick<EncodedBlock, 'rows' | 'uncompressed'>[]): boolean {
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0);
  const bytes = blocks.reduce((sum, { uncompressed = 0 }) => sum + uncompressed, 0);
  return rows >= maxRows || bytes >= maxBytes;
}
