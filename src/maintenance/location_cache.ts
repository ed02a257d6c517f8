import type { ObsoleteObject } from '../decisions/obsolete_objects.ts';
import type { Destination, ManifestState, PresentManifest } from '../destination/destination.ts';
import type { OpenLocation } from '../destination/open_location.ts';

/** The places that an export's objects were written to, each opened once. */
export interface LocationCache {
  /** Where objects of a config are. A place that could not be opened, or failed, is not tried again. */
  of(object: ObsoleteObject, configVersion: number): Promise<Destination>;
  close(): Promise<void>;
}

/** Opens the places of one export as they are asked for. */
export function createLocationCache(openLocation: OpenLocation): LocationCache {
  const opened = new Map<number, Promise<Destination>>();
  return {
    of: ({ batch_export_id, newest_config_version }, config_version) => {
      const known = opened.get(config_version);
      if (known) return known;
      const opening = openLocation({ batch_export_id, config_version, newest_config_version });
      // Whoever asked hears of it; nobody may ask again.
      opening.catch(() => undefined);
      opened.set(config_version, opening);
      return opening;
    },
    close: async () => {
      const destinations = await Promise.allSettled(opened.values());
      for (const destination of destinations)
        if (destination.status === 'fulfilled') destination.value.close();
    },
  };
}

/** Whether a manifest names a file, as far as that can be seen. */
export type ManifestReference = 'named' | 'not named' | 'not to be seen';

/** Looks what manifests name, right before files are removed; each manifest of one interval once. */
export interface ManifestReader {
  /** Looks at the manifest that readers follow now and at the one beside the object. */
  referenceTo(object: ObsoleteObject): Promise<ManifestReference>;
  /**
   * Whether readers follow another manifest now than this one, which was seen where `manifest` was put; two configs may
   * lead to one place.
   */
  isSuperseded(manifest: ObsoleteObject, seen: PresentManifest): Promise<boolean>;
}

/**
 * Reads the manifests of one interval. The one that counts stands where the newest Completed run put it; one that an
 * older config put elsewhere is a reader's truth for as long as it stands.
 */
export function createManifestReader(places: LocationCache, signal: AbortSignal): ManifestReader {
  const seen = new Map<string, Promise<ManifestState>>();
  const look = async (object: ObsoleteObject, version: number, key?: string): Promise<ManifestState> => {
    const destination = await places.of(object, version);
    const manifestKey = key ?? destination.manifestKey(object);
    const name = `${version}/${manifestKey}`;
    const looking = seen.get(name) ?? destination.getManifest(manifestKey, signal);
    seen.set(name, looking);
    return looking;
  };
  return {
    referenceTo: async (object) => {
      const { config_version, current_key, current_config_version } = object;
      const manifests = [await look(object, config_version)];
      if (current_key !== null && current_config_version !== null)
        manifests.push(await look(object, current_config_version, current_key));
      if (manifests.some((place) => place.state === 'present' && names(place.text, object.key)))
        return 'named';
      return manifests.some(({ state }) => state === 'unreadable') ? 'not to be seen' : 'not named';
    },
    isSuperseded: async (manifest, seen) => {
      const { key, current_key, current_config_version } = manifest;
      if (current_key === null || current_config_version === null) return false;
      if (current_key !== key) return true;
      const current = await look(manifest, current_config_version, current_key);
      return current.state === 'present' && current.text !== seen.text;
    },
  };
}

/** Asks the text and not its members, so that a manifest of a later version, or one made by hand, is understood too. */
const names = (manifest: string, key: string): boolean => manifest.includes(JSON.stringify(key));
