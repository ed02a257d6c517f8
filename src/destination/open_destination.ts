import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import { readConfig } from './config_versions.ts';
import type { Destination } from './destination.ts';
import type { DestinationContext } from './destination_type.ts';
import { destinationTypeOf } from './registry.ts';
import { readTraits, storeTraits } from './store_traits.ts';

/** Opens the destination of a run, with the config version that the run was created with. */
export type OpenDestination = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  onError: DestinationContext['onError'],
) => Promise<Destination>;

/**
 * Creates the function that opens destinations from stored configs. Each is opened for one activity and closed at its
 * end.
 */
export const createDestinationOpener =
  (pool: Pool, keyRing: KeyRing, settings: Settings): OpenDestination =>
  async (spec, onError) => {
    const stored = await readConfig(pool, keyRing, spec.batch_export_id, spec.config_version);
    const type = destinationTypeOf(stored.destination_type);
    // Validated again, because settings may have become stricter after the config was stored.
    const config = type.parseConfig(stored.config, settings);
    const location = type.locationOf(config);
    return type.open(config, {
      settings,
      onError,
      traits: await readTraits(pool, location),
      onTraits: (found) => storeTraits(pool, location, found),
    });
  };
