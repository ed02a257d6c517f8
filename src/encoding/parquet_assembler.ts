import type { JsonValue } from '../domain/json_value.ts';
import type { ExportedColumn } from '../source/source.ts';
import type { EncodedBlock, EncoderState, FileAssembly, ParquetCompression } from './encoder.ts';
import { parquetFooter, parquetHeader } from './parquet/file.ts';
import { rowGroupOf, type RowGroup } from './parquet/row_group_state.ts';

/**
 * Joins row groups and writes the footer behind them. The state of a part is the list of its row groups, so that whoever
 * goes on with the file can describe them all.
 */
export function assembleParquet(
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  resumed: readonly EncoderState[],
): FileAssembly {
  const rowGroups = resumed.flatMap(rowGroupsOf);
  let begun = resumed.length > 0;
  let taken = rowGroups.length;

  /** What stands in front of everything, once. */
  const begin = (): Buffer[] => {
    if (begun) return [];
    begun = true;
    return [parquetHeader()];
  };

  return {
    append(block: EncodedBlock) {
      const rowGroup = rowGroupOf(block.state);
      // All its rows may have been rejected.
      if (rowGroup.rows > 0) rowGroups.push(rowGroup);
      return Promise.resolve(Buffer.concat([...begin(), block.bytes]));
    },
    takeState() {
      const state: readonly JsonValue[] = rowGroups.slice(taken);
      taken = rowGroups.length;
      return state;
    },
    finish: () =>
      Promise.resolve(Buffer.concat([...begin(), parquetFooter(columns, compression, rowGroups)])),
    close: () => undefined,
  };
}

/** The row groups of a part. @throws TypeError when the state is not theirs, which this assembly never gave */
function rowGroupsOf(state: EncoderState): RowGroup[] {
  if (!Array.isArray(state)) throw new TypeError('The state of a part is not that of Parquet row groups.');
  return state.map((rowGroup: JsonValue) => rowGroupOf(rowGroup));
}
