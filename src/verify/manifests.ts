import { buffer } from 'node:stream/consumers';
import { DestinationError } from '../destination/destination.ts';
import { parseManifest, type Manifest } from '../destination/manifest.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { overlaps, type TimeRange } from './coverage.ts';
import type { ExportLocation } from './locations.ts';
import type { Finding, Note } from './report.ts';

/** The location and key of a manifest that has not been read. */
export interface ManifestObject {
  readonly location: ExportLocation;
  readonly key: string;
  /** The full name for messages. */
  readonly name: string;
}

/** An interval and its manifests: one, unless the export was moved. */
export interface IntervalManifests extends DataInterval {
  readonly names: readonly ManifestObject[];
}

/** A manifest that was read. */
export interface LoadedManifest extends ManifestObject {
  readonly manifest: Manifest;
  /** The content, to detect whether it was replaced. */
  readonly text: string;
}

/** The content of the manifest folders of an export. */
export interface Listing {
  readonly intervals: readonly IntervalManifests[];
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

const namePattern = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.json$/;

/** The interval in the name of a manifest; undefined when it has none. */
function intervalOfName(name: string): DataInterval | undefined {
  const [, ...parts] = namePattern.exec(name) ?? [];
  const [start, end] = [parts.slice(0, 6), parts.slice(6)].map(
    ([year, month, day, hour, minute, second]) => `${year}-${month}-${day}T${hour}:${minute}:${second}.000Z`,
  );
  return start !== undefined &&
    end !== undefined &&
    Number.isFinite(Date.parse(start)) &&
    Date.parse(start) < Date.parse(end)
    ? { start, end }
    : undefined;
}

/**
 * Lists the manifests of all intervals that overlap the range, in all locations of the export.
 * @throws DestinationError when the current location cannot be listed; for other locations a note is added
 */
export async function listManifests(
  locations: readonly ExportLocation[],
  range: TimeRange,
  signal: AbortSignal,
): Promise<Listing> {
  const intervals = new Map<string, { start: string; end: string; names: ManifestObject[] }>();
  const findings: Finding[] = [];
  const notes: Note[] = [];
  for (const location of locations)
    for (const folder of location.manifestFolders)
      try {
        for await (const key of location.reader.listKeys(folder, signal)) {
          const found = { location, key, name: location.reader.nameOf(key) };
          const interval = intervalOfName(key.slice(folder.length));
          if (!interval) findings.push(misnamedFinding(found.name, 'its name is not an interval'));
          else if (overlaps(interval, range)) {
            const id = `${interval.start} ${interval.end}`;
            const known = intervals.get(id) ?? { ...interval, names: [] };
            known.names.push(found);
            intervals.set(id, known);
          }
        }
      } catch (error) {
        if (location.current || !(error instanceof DestinationError)) throw error;
        const detail = `Manifests in the earlier location ${location.reader.nameOf(folder)} could not be listed: ${error.message}`;
        notes.push({ start: null, end: null, reason: null, intervals: 0, detail });
      }
  return { intervals: [...intervals.values()], findings, notes };
}

const misnamedFinding = (object: string, reason: string): Finding => ({
  kind: 'manifest_misnamed',
  start: null,
  end: null,
  object,
  count: 1,
  rows: [],
  detail: `The object is in the manifest folder, but ${reason}.`,
});

/**
 * Reads a manifest. `manifest` is undefined when the object is not a manifest. Returns null when the object does not
 * exist.
 */
export async function readManifest(
  name: ManifestObject,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly manifest: Manifest | undefined } | null> {
  const object = await name.location.reader.open(name.key, signal);
  if (!object) return null;
  const text = (await buffer(object.chunks)).toString('utf8');
  return { text, manifest: parseManifest(text) };
}
