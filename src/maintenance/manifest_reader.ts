import type { ObsoleteObject } from '../decisions/obsolete_objects.ts';
import type { ManifestState, PresentManifest } from '../destination/destination.ts';
import type { LocationCache } from './location_cache.ts';

/** Whether a manifest refers to a file; `unreadable` when a manifest could not be read. */
export type ManifestReference = 'referenced' | 'unreferenced' | 'unreadable';

/** Reads the manifests of one interval, each once, right before its files are deleted. */
export interface ManifestReader {
  /**
   * Whether the credentials of the object's location may read objects, as far as the manifest there proves it. An object
   * that they may not read is then absent.
   */
  canRead(object: ObsoleteObject): Promise<boolean>;
  /** Checks the current manifest of the interval, and the one at the location of the object. */
  referenceTo(object: ObsoleteObject): Promise<ManifestReference>;
  /**
   * Whether the interval's current manifest is another than `found`, which exists at the key of `manifest`. The keys alone
   * do not tell, since two configs may write to one location.
   */
  isSuperseded(manifest: ObsoleteObject, found: PresentManifest): Promise<boolean>;
}

/**
 * The current manifest is the one of the newest Completed run. A manifest that an older config left at another location
 * still serves readers of that location, as long as it exists.
 */
export function createManifestReader(locations: LocationCache, signal: AbortSignal): ManifestReader {
  const read = new Map<string, Promise<ManifestState>>();
  const getManifest = async (
    object: ObsoleteObject,
    configVersion: number,
    key?: string,
  ): Promise<ManifestState> => {
    const location = await locations.of(object, configVersion);
    const manifestKey = key ?? location.manifestKey(object);
    const name = `${configVersion}/${manifestKey}`;
    const reading = read.get(name) ?? location.getManifest(manifestKey, signal);
    read.set(name, reading);
    return reading;
  };
  return {
    canRead: async (object) => (await getManifest(object, object.config_version)).state === 'present',
    referenceTo: async (object) => {
      const { config_version, current_key, current_config_version } = object;
      const manifests = [await getManifest(object, config_version)];
      if (current_key !== null && current_config_version !== null)
        manifests.push(await getManifest(object, current_config_version, current_key));
      if (manifests.some((manifest) => manifest.state === 'present' && refersTo(manifest.text, object.key)))
        return 'referenced';
      return manifests.some(({ state }) => state === 'unreadable') ? 'unreadable' : 'unreferenced';
    },
    isSuperseded: async (manifest, found) => {
      const { key, current_key, current_config_version } = manifest;
      if (current_key === null || current_config_version === null) return false;
      if (current_key !== key) return true;
      const current = await getManifest(manifest, current_config_version, current_key);
      return current.state === 'present' && current.text !== found.text;
    },
  };
}

/** Searches the text instead of parsing it, which also works for manifests of later versions or written by people. */
const refersTo = (manifest: string, key: string): boolean => manifest.includes(JSON.stringify(key));
