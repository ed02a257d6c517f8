import type { TableStore } from '../destination/table_store.ts';
import { openDeltaTable } from './delta_table.ts';
import { openIcebergTable } from './iceberg_table.ts';
import type { TableLog } from './table_log.ts';

/** Opens the table of a store in its format. Sends no request yet. */
export const openTableLog = (store: TableStore): TableLog =>
  store.catalog ? openIcebergTable(store, store.catalog) : openDeltaTable(store);
