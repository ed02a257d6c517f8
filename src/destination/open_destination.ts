import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import type { CircuitBreaker, ProbeWait } from './circuit_breaker.ts';
import { readConfig } from './config_versions.ts';
import type { Destination } from './destination.ts';
import type { DestinationContext } from './destination_type.ts';
import { destinationTypeOf } from './registry.ts';
import { readTraits, storeTraits } from './store_traits.ts';

/**
 * Opens the destination of a run, with the config version that the run was created with, if it responds.
 * @param waiting how to wait for the probe of a destination that has been silent
 * @throws DestinationError `DestinationUnavailable`
 */
export type OpenDestination = (
  spec: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  onError: DestinationContext['onError'],
  waiting?: ProbeWait,
) => Promise<Destination>;

/** The wait of a caller outside the export slots. */
const plainWait: ProbeWait = { signal: new AbortController().signal };

/**
 * Creates the function that opens destinations from stored configs. Each is opened for one activity and closed at its
 * end.
 * @param circuits without them, no destination is probed
 */
export const createDestinationOpener =
  (pool: Pool, keyRing: KeyRing, settings: Settings, circuits?: CircuitBreaker): OpenDestination =>
  async (spec, onError, waiting = plainWait) => {
    const stored = await readConfig(pool, keyRing, spec.batch_export_id, spec.config_version);
    const type = destinationTypeOf(stored.destination_type);
    // Validated again, because settings may have become stricter after the config was stored.
    const config = type.parseConfig(stored.config, settings);
    const location = type.locationOf(config);
    const circuit = type.circuitOf(config);
    const [traits] = await Promise.all([
      readTraits(pool, location),
      circuits?.admit(circuit, () => type.probe(config, settings), waiting),
    ]);
    return type.open(config, {
      settings,
      onError,
      traits,
      onTraits: (found) => storeTraits(pool, location, found),
      ...(circuits && { circuit: circuits.reporter(circuit) }),
    });
  };
