import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import { readConfig } from './config_versions.ts';
import type { Destination } from './destination.ts';
import { destinationTypeOf } from './registry.ts';

/** Where objects of an export were written, and the config whose credentials are tried first: the one in force. */
export interface ObjectLocation {
  readonly batch_export_id: string;
  readonly config_version: number;
  /** Null where there is none. */
  readonly newest_config_version: number | null;
}

/** Opens the place of objects that were written under an older config. A request that fails is not made again. */
export type OpenLocation = (place: ObjectLocation) => Promise<Destination>;

/** Opens places with the credentials of the newest config that leads to the same bucket. */
export const createLocationOpener = (pool: Pool, keyRing: KeyRing, settings: Settings): OpenLocation => {
  const impatient = { ...settings, EXPORTD_S3_RETRY_BUDGET: 0 };
  return async ({ batch_export_id, config_version, newest_config_version }) => {
    const stored = await readConfig(pool, keyRing, batch_export_id, config_version);
    const type = destinationTypeOf(stored.destination_type);
    const written = type.parseConfig(stored.config, settings);
    const newest =
      newest_config_version === null || newest_config_version === config_version
        ? stored
        : await readConfig(pool, keyRing, batch_export_id, newest_config_version);
    // An export's destination never changes its type.
    const config = type.withAccessOf(written, type.parseConfig(newest.config, settings));
    return type.open(config, { settings: impatient, onError: () => undefined });
  };
};
