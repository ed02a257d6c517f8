import type { Pool } from '../../../journal/database.ts';
import type { ExportFields } from './field_changes.ts';

/** Reads the fields and the sealed secrets of each config version of an export, by their paths in the API. */
export async function readConfigFields(
  pool: Pool,
  batchExportId: string,
): Promise<ReadonlyMap<number, ExportFields>> {
  const { rows } = await pool.query<{
    version: number;
    config: Record<string, unknown>;
    secrets: Record<string, string>;
  }>('select version, config, secrets from exportd.destination_configs where batch_export_id = $1', [
    batchExportId,
  ]);
  return new Map(
    rows.map(({ version, config, secrets }) => [
      version,
      { fields: inDestination(config), secrets: inDestination(secrets) },
    ]),
  );
}

const inDestination = <Value>(fields: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [`destination.config.${name}`, value]));
