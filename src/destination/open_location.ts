import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { CircuitBreaker } from './circuit_breaker.ts';
import { readConfig } from './config_versions.ts';
import type { Destination } from './destination.ts';
import { destinationTypeOf } from './registry.ts';

/**
 * The location of objects of an export: the config version they were written with, and the newest one, whose
 * credentials are tried first.
 */
export interface ObjectLocation {
  readonly batch_export_id: string;
  readonly config_version: number;
  /** Null when the export has none. */
  readonly newest_config_version: number | null;
}

/**
 * Opens the location of objects that were written with an older config, if it responds.
 * @throws DestinationError `DestinationUnavailable`
 */
export type OpenLocation = (location: ObjectLocation) => Promise<Destination>;

/**
 * Creates the function that opens locations, with the credentials of the newest config that leads to the same bucket.
 * @param options `retryBudgetMs`: how long a failed request is retried; `circuits`: without them, no location is probed
 */
export const createLocationOpener = (
  pool: Pool,
  keyRing: KeyRing,
  settings: Settings,
  {
    retryBudgetMs = 0,
    circuits,
  }: { readonly retryBudgetMs?: number; readonly circuits?: CircuitBreaker } = {},
): OpenLocation => {
  const withRetryBudget = { ...settings, EXPORTD_S3_RETRY_BUDGET: retryBudgetMs };
  return async ({ batch_export_id, config_version, newest_config_version }) => {
    const stored = await readConfig(pool, keyRing, batch_export_id, config_version);
    const type = destinationTypeOf(stored.destination_type);
    const written = type.parseConfig(stored.config, settings);
    const newest =
      newest_config_version === null || newest_config_version === config_version
        ? stored
        : await readConfig(pool, keyRing, batch_export_id, newest_config_version);
    // The destination type of an export never changes.
    const config = type.withCredentialsOf(written, type.parseConfig(newest.config, settings));
    const circuit = type.circuitOf(config);
    const { signal } = new AbortController();
    await circuits?.admit(circuit, () => type.probe(config, settings), { signal });
    return type.open(config, {
      settings: withRetryBudget,
      onError: () => undefined,
      ...(circuits && { circuit: circuits.reporter(circuit) }),
    });
  };
};
