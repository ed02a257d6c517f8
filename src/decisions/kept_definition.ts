import { readPublicConfig, selectionOfConfig } from '../destination/config_versions.ts';
import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { RunDefinition } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';

/**
 * The model and config with which exportd itself exports the interval of a run again. A changed model or selection is not
 * applied to what was exported before until a person asks for it, so the run's own are kept. Undefined for the current
 * ones, if they select the same rows: they may have new credentials.
 */
export async function definitionToKeep(
  connection: Connection,
  { definition }: Pick<LiveBatchExport, 'definition'>,
  batchExportId: string,
  runId: string,
): Promise<RunDefinition | undefined> {
  const { rows } = await connection.query<RunDefinition>(
    'select model, config_version from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const [exported] = rows;
  if (!exported) return undefined;
  const { model, config_version } = definition;
  if (exported.model === model) {
    if (exported.config_version === config_version) return undefined;
    const read = async (version: number): Promise<string> =>
      JSON.stringify(selectionOfConfig(await readPublicConfig(connection, batchExportId, version)));
    if ((await read(exported.config_version)) === (await read(config_version))) return undefined;
  }
  return exported;
}
