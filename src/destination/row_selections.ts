import type { RunSubject } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { readPublicConfig } from './config_versions.ts';
import { destinationTypeOf } from './registry.ts';

/** Which rows of its interval a run takes; fixed by the version of the config that it was opened with. */
export type SelectionOf = (
  subject: Pick<RunSubject, 'batch_export_id' | 'config_version'>,
) => Promise<RowSelection>;

/** Reads selections from the stored configs; no secret is opened. */
export const createSelectionReader =
  (pool: Pool): SelectionOf =>
  async ({ batch_export_id, config_version }) => {
    const stored = await readPublicConfig(pool, batch_export_id, config_version);
    return destinationTypeOf(stored.destination_type).selectionOf(stored.config);
  };
