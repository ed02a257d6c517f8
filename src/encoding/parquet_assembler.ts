import type { JsonValue } from '../domain/json_value.ts';
import type { ExportedColumn } from '../source/columns.ts';
import type { EncodedBlock, EncoderState, FileAssembly, ParquetCompression } from './encoder.ts';
import { parquetFooter, parquetHeader } from './parquet/file.ts';
import { parseRowGroup, type RowGroup } from './parquet/row_group_state.ts';

/**
 * Joins row groups and writes the footer. The state of a part is the list of its row groups, so that another attempt
 * can write the footer.
 */
export function assembleParquet(
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
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
