import type { RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { readPublicConfig, type StoredConfig } from './config_versions.ts';
import { destinationTypeOf } from './registry.ts';
import type { PublicConfig } from './sealed_config.ts';

/** Reads the selection of a run, which its config version determines. */
export type ReadSelection = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
) => Promise<RowSelection>;

/** Number of cached selections. Each step of a run reads the selection of its config version. */
const cacheSize = 1_000;

/**
 * Reads selections from stored configs, without decrypting secrets. Config versions are immutable, so selections are
 * cached.
 */
export function createSelectionReader(pool: Pool): ReadSelection {
  const selections = new Map<string, RowSelection>();
  return async ({ batch_export_id, config_version }) => {
    const key = `${batch_export_id}/${config_version}`;
    const known = selections.get(key);
    if (known) return known;
    const selection = selectionOfConfig(await readPublicConfig(pool, batch_export_id, config_version));
    selections.set(key, selection);
    const [oldest] = selections.keys();
    if (selections.size > cacheSize && oldest !== undefined) selections.delete(oldest);
    return selection;
  };
}

/** The selection of a stored config version. */
export const selectionOfConfig = ({
  destination_type,
  config,
  row_query,
}: PublicConfig & Pick<StoredConfig, 'row_query'>): RowSelection => ({
  ...destinationTypeOf(destination_type).selectionOf(config),
  query: row_query,
});
