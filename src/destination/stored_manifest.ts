import {
  type ForeignBytes,
  ForeignBytesTooCostly,
  foreignParser,
  isShort,
} from '../foreign_bytes/foreign_bytes.ts';
import { DestinationError } from './destination.ts';
import { type Manifest, parseManifest } from './manifest.ts';

const manifestParser = foreignParser<typeof parseManifest>('manifest');

/**
 * Parses an object of a bucket, in a process of its own if it is long; undefined when it is not a manifest.
 * @throws DestinationError `ManifestTooLarge` when it takes too much memory or time
 */
export async function parseStoredManifest(
  text: string,
  foreign: ForeignBytes,
): Promise<Manifest | undefined> {
  if (isShort(text)) return parseManifest(text);
  return foreign.parse(manifestParser, text).catch((error: unknown) => {
    if (!(error instanceof ForeignBytesTooCostly)) throw error;
    throw new DestinationError('ManifestTooLarge', `A manifest in the bucket ${error.message}.`, {
      transient: false,
    });
  });
}
