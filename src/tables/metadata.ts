/** What a table is, beside its files: its protocol, its owner, its columns and partitions. */
import { safeText } from '../config/bounds.ts';
import type { TableStore } from './table_store.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import type { Action, ProtocolAction } from './actions.ts';
import { statisticsColumn, withColumns, withPartitions } from './schema.ts';
import type { TableState } from './state.ts';
import { tableError } from './table_error.ts';

/** The protocol of the tables that exportd writes. Readers and writers of any version know it. */
const protocol: ProtocolAction = { minReaderVersion: 1, minWriterVersion: 2 };

/** How long the log stays before a checkpoint, in milliseconds. */
export const logRetentionMs = 30 * 86_400_000;

/** @throws DestinationError `TableProtocol` */
export function requireProtocol({ name }: TableStore, state: TableState): void {
  const { minReaderVersion = 0, minWriterVersion = 0 } = state.protocol ?? {};
  if (minReaderVersion > protocol.minReaderVersion || minWriterVersion > protocol.minWriterVersion)
    throw tableError(
      'TableProtocol',
      `The table ${name} was changed to protocol ${minReaderVersion}/${minWriterVersion} by another writer, and exportd writes ${protocol.minReaderVersion}/${protocol.minWriterVersion}. exportd must be its only writer: use another prefix.`,
    );
}

/** @throws DestinationError `TableProtocol`, `TableOfAnother`: exportd may not commit to the table */
export function requireWritable(store: TableStore, state: TableState, batchExportId: string): void {
  requireProtocol(store, state);
  if (state.metaData?.id !== batchExportId)
    throw tableError(
      'TableOfAnother',
      `The table ${store.name} belongs to another export or another writer. Use another prefix.`,
    );
  const found = state.metaData.partitionColumns.map(shownText).join(', ');
  const wanted = store.partitionColumns.join(', ');
  if (found !== wanted)
    throw tableError(
      'TableProtocol',
      `The table ${store.name} has ${found === '' ? 'no partitions' : `the partitions ${found}`}, and partition_by of the export ${wanted === '' ? 'has none' : `gives ${wanted}`}. A table keeps its partitions: use another prefix.`,
    );
}

/** What a person sees of a name or type that another program wrote. */
export const shownText = (text: string): string => safeText(text).slice(0, 200);

/**
 * The actions that make the table one with these columns too: none if it is one.
 * @param state null for a new table
 * @throws DestinationError `TableColumnConflict`
 */
export function definitionOf(
  store: TableStore,
  state: TableState | null,
  {
    batch_export_id,
    columns,
    now,
  }: { readonly batch_export_id: string; readonly columns: readonly ExportedColumn[]; readonly now: number },
): readonly Action[] {
  const former = state?.metaData ?? null;
  const schemaString = withColumns(
    former?.schemaString ?? null,
    withPartitions(store.partitionColumns, columns),
  );
  if (schemaString === former?.schemaString) return [];
  const metaData = former ?? {
    id: batch_export_id,
    name: store.root.split('/').at(-1) ?? '',
    format: { provider: 'parquet', options: {} },
    partitionColumns: [...store.partitionColumns],
    configuration: {
      'delta.deletedFileRetentionDuration': hoursOf(store.settings.EXPORTD_TABLE_FILE_RETENTION),
      'delta.logRetentionDuration': hoursOf(logRetentionMs),
      // deltalake takes a missing minimum of any other column for one that excludes every value.
      'delta.dataSkippingStatsColumns': statisticsColumn,
    },
    createdTime: now,
  };
  return [...(state ? [] : [{ protocol }]), { metaData: { ...metaData, schemaString } }];
}

const hoursOf = (ms: number): string => `interval ${Math.ceil(ms / 3_600_000)} hours`;
