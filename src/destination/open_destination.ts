import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import { readConfig } from './config_versions.ts';
import type { Destination, DestinationContext } from './destination.ts';
import { destinationTypeOf } from './registry.ts';

/** Opens the destination of a run, with the version of the config that the run was opened with. */
export type OpenDestination = (
  subject: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  onError: DestinationContext['onError'],
) => Promise<Destination>;

/** Opens destinations from their stored configs. Each is opened for one activity and closed with it. */
export const createDestinationOpener =
  (pool: Pool, keyRing: KeyRing, settings: Settings): OpenDestination =>
  async (subject, onError) => {
    const stored = await readConfig(pool, keyRing, subject.batch_export_id, subject.config_version);
    const type = destinationTypeOf(stored.destination_type);
    // Checked again, since what is allowed may have become stricter after the config was stored.
    return type.open(type.parseConfig(stored.config, settings), { settings, onError });
  };
