import type { RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { readPublicConfig, type StoredConfig } from './config_versions.ts';
import { destinationTypeOf } from './registry.ts';
import type { PublicConfig } from './sealed_config.ts';

/** Which rows of its interval a run takes, and what of them; fixed by the version of the config that it was opened with. */
export type SelectionOf = (
  subject: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
) => Promise<RowSelection>;

/** Selections that a process remembers: of each export the newest version is asked for, in every step of a run. */
const remembered = 1_000;

/** Reads selections from the stored configs; no secret is opened. What a version says never changes, so it is read once. */
export function createSelectionReader(pool: Pool): SelectionOf {
  const selections = new Map<string, RowSelection>();
  return async ({ batch_export_id, config_version }) => {
    const key = `${batch_export_id}/${config_version}`;
    const known = selections.get(key);
    if (known) return known;
    const selection = storedSelection(await readPublicConfig(pool, batch_export_id, config_version));
    selections.set(key, selection);
    const [oldest] = selections.keys();
    if (selections.size > remembered && oldest !== undefined) selections.delete(oldest);
    return selection;
  };
}

/** The selection that a stored version of a config makes. */
export const storedSelection = ({
  destination_type,
  config,
  row_query,
}: PublicConfig & Pick<StoredConfig, 'row_query'>): RowSelection => ({
  ...destinationTypeOf(destination_type).selectionOf(config),
  query: row_query,
});
