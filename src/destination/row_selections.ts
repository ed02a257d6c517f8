import type { RunSubject } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { readPublicConfig, type StoredConfig } from './config_versions.ts';
import { destinationTypeOf } from './registry.ts';
import type { PublicConfig } from './sealed_config.ts';

/** Which rows of its interval a run takes, and what of them; fixed by the version of the config that it was opened with. */
export type SelectionOf = (
  subject: Pick<RunSubject, 'batch_export_id' | 'config_version'>,
) => Promise<RowSelection>;

/** Reads selections from the stored configs; no secret is opened. */
export const createSelectionReader =
  (pool: Pool): SelectionOf =>
  async ({ batch_export_id, config_version }) => {
    const stored = await readPublicConfig(pool, batch_export_id, config_version);
    return storedSelection(stored);
  };

/** The selection that a stored version of a config makes. */
export const storedSelection = ({
  destination_type,
  config,
  row_query,
}: PublicConfig & Pick<StoredConfig, 'row_query'>): RowSelection => ({
  ...destinationTypeOf(destination_type).selectionOf(config),
  query: row_query,
});
