import type { ObsoleteObject } from '../decisions/obsolete_objects.ts';
import type { Destination, OpenLocation } from '../destination/open_destination.ts';

/** The locations of an export's objects, each opened once. */
export interface LocationCache {
  /** The location that a config version wrote to. One that could not be opened is not retried. */
  of(object: ObsoleteObject, configVersion: number): Promise<Destination>;
  close(): Promise<void>;
}

/** Opens the locations of one export on first use. */
export function createLocationCache(openLocation: OpenLocation): LocationCache {
  const locations = new Map<number, Promise<Destination>>();
  return {
    of: ({ batch_export_id, newest_config_version }, config_version) => {
      const known = locations.get(config_version);
      if (known) return known;
      const opening = openLocation({ batch_export_id, config_version, newest_config_version });
      // The caller handles the rejection; a cached promise without a handler would be reported as unhandled.
      opening.catch(() => undefined);
      locations.set(config_version, opening);
      return opening;
    },
    close: async () => {
      const opened = await Promise.allSettled(locations.values());
      for (const location of opened) if (location.status === 'fulfilled') location.value.close();
    },
  };
}
