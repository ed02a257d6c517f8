import {
  areInSameBucket,
  ConfigVersionNotFound,
  readConfigVersions,
  readPublicConfig,
} from '../destination/config_versions.ts';
import type { Manifest } from '../destination/manifest.ts';
import { configsOfBucket, foreignBecause } from '../destination/own_keys.ts';
import type { AdoptedManifest } from '../domain/adopted_manifest.ts';
import type { RunSpec } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';

/** Returns why exportd cannot have written a manifest of a run's interval, as a sentence; null if it may have. */
export async function foreignManifestBecause(
  pool: Pool,
  spec: RunSpec,
  manifest: Manifest,
): Promise<string | null> {
  const { config } = await readPublicConfig(pool, spec.batch_export_id, spec.config_version);
  const versions = await readConfigVersions(pool, spec.batch_export_id);
  return foreignBecause(manifest, spec, configsOfBucket(versions, config));
}

/** The facts of a manifest of the bucket that a run adopts. */
export async function readAdoptedManifest(
  pool: Pool,
  spec: RunSpec,
  manifest: Manifest,
): Promise<Omit<AdoptedManifest, 'raised_to'>> {
  const { run_id, generation, model, settled, source_rows, fingerprint, encoder, created_at } = manifest;
  const { files, rejected_file, kept, earlier } = manifest;
  const facts = { run_id, generation, model, settled, source_rows, fingerprint, encoder, created_at };
  const config_version = await findConfigVersion(pool, spec, manifest.config_version);
  return { ...facts, config_version, files, rejected_file, kept, earlier };
}

/**
 * The config version of the manifest, or the run's. The journal may lack it, or have given its number to another config,
 * but the manifest was found in the bucket of the run.
 */
async function findConfigVersion(pool: Pool, spec: RunSpec, configVersion: number): Promise<number> {
  try {
    const isSameBucket = await areInSameBucket(pool, spec, { config_version: configVersion });
    return isSameBucket ? configVersion : spec.config_version;
  } catch (error) {
    if (error instanceof ConfigVersionNotFound) return spec.config_version;
    throw error;
  }
}
