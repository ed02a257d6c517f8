import { buffer } from 'node:stream/consumers';
import { DestinationError } from '../destination/destination.ts';
import { parseManifest, type Manifest } from '../destination/manifest.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { touches, type TimeRange } from './coverage.ts';
import type { ExportLocation } from './locations.ts';
import type { Finding, Note } from './report.ts';

/** A manifest's object, known by its name alone. */
export interface ManifestName {
  readonly location: ExportLocation;
  readonly key: string;
  /** The full name for people. */
  readonly name: string;
}

/** The names of an interval's manifests: one, unless the export was moved. */
export interface NamedInterval extends DataInterval {
  readonly names: readonly ManifestName[];
}

/** A manifest as it was read. */
export interface FoundManifest extends ManifestName {
  readonly manifest: Manifest;
  /** Another text means that it was replaced. */
  readonly text: string;
}

/** What lies in the export's manifest folders. */
export interface Listing {
  readonly intervals: readonly NamedInterval[];
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

const nameShape = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.json$/;

/** The interval that a manifest's name gives; undefined when it gives none. */
function intervalOfName(name: string): DataInterval | undefined {
  const [, ...parts] = nameShape.exec(name) ?? [];
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
 * Lists the manifests of the intervals that touch the range, in every place of the export.
 * @throws DestinationError when the place in force cannot be listed; of another one it is a note.
 */
export async function listManifests(
  locations: readonly ExportLocation[],
  range: TimeRange,
  signal: AbortSignal,
): Promise<Listing> {
  const intervals = new Map<string, { start: string; end: string; names: ManifestName[] }>();
  const findings: Finding[] = [];
  const notes: Note[] = [];
  for (const location of locations)
    for (const folder of location.manifestFolders)
      try {
        for await (const key of location.reader.listKeys(folder, signal)) {
          const found = { location, key, name: location.reader.nameOf(key) };
          const interval = intervalOfName(key.slice(folder.length));
          if (!interval) findings.push(misnamed(found.name, 'its name is not that of an interval'));
          else if (touches(interval, range)) {
            const id = `${interval.start} ${interval.end}`;
            const known = intervals.get(id) ?? { ...interval, names: [] };
            known.names.push(found);
            intervals.set(id, known);
          }
        }
      } catch (error) {
        if (location.current || !(error instanceof DestinationError)) throw error;
        const detail = `Manifests below ${location.reader.nameOf(folder)}, where the export wrote before, could not be listed: ${error.message}`;
        notes.push({ start: null, end: null, detail });
      }
  return { intervals: [...intervals.values()], findings, notes };
}

const misnamed = (object: string, why: string): Finding => ({
  kind: 'manifest_misnamed',
  start: null,
  end: null,
  object,
  count: 1,
  rows: [],
  detail: `It lies among the manifests, but ${why}.`,
});

/** A manifest read by its name; its text alone when it is none, null when there is none any more. */
export async function readManifest(
  name: ManifestName,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly manifest: Manifest | undefined } | null> {
  const object = await name.location.reader.open(name.key, signal);
  if (!object) return null;
  const text = (await buffer(object.chunks)).toString('utf8');
  return { text, manifest: parseManifest(text) };
}
