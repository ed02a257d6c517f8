import type { Settings } from '../config/settings.ts';
import { locationOf } from '../destination/bucket_location.ts';
import type { FolderStore } from '../destination/folder_store.ts';
import type { PartitionColumn } from '../destination/partitions.ts';
import { tableRoot } from '../destination/prefix.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { Model } from '../domain/batch_export.ts';

/** The store of a table: its folder, and what writes there has to know. */
export interface TableStore extends FolderStore {
  /** Identifies the table: server, bucket and folder. */
  readonly location: string;
  /** The columns that its files are partitioned by. */
  readonly partitionColumns: readonly PartitionColumn[];
  readonly settings: Settings;
}

/** The store of the table that the files of a model belong to; null without a table. */
export function tableOf(
  destination: Pick<
    Destination,
    'folder' | 'location' | 'partitionColumns' | 'prefix' | 'settings' | 'table_format'
  >,
  model: Model,
): TableStore | null {
  const { table_format, prefix, partitionColumns, settings } = destination;
  if (table_format === null) return null;
  const root = tableRoot(prefix, model);
  const location = `${destination.location}/${root}`;
  return { ...destination.folder(root), location, partitionColumns, settings };
}

/** Identifies the table of a stored config: server, bucket and folder; null without a table. */
export function tableLocationOf(config: Readonly<Record<string, unknown>>, model: Model): string | null {
  const { table_format, prefix } = config;
  if (typeof table_format !== 'string' || typeof prefix !== 'string') return null;
  return `${locationOf(config)}/${tableRoot(prefix, model)}`;
}
