import type { RunSpec } from '../domain/run.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { readPublicConfig } from './config_versions.ts';
import { destinationTypeOf } from './registry.ts';

/**
 * Whether two runs of an export write to the same bucket, so that a manifest of one can name files of the other.
 * @throws ConfigVersionNotFound
 */
export async function areInSameBucket(
  database: Pool | Connection,
  one: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  other: Pick<RunSpec, 'config_version'>,
): Promise<boolean> {
  if (one.config_version === other.config_version) return true;
  const first = await readPublicConfig(database, one.batch_export_id, one.config_version);
  const second = await readPublicConfig(database, one.batch_export_id, other.config_version);
  const type = destinationTypeOf(first.destination_type);
  return type.locationOf(first.config) === type.locationOf(second.config);
}
