import { buffer } from 'node:stream/consumers';
import { type Bound, bounds, boundText } from '../config/bounds.ts';
import { isId } from '../contract/workflow_ids.ts';
import { DestinationError } from '../destination/destination.ts';
import { parseStoredManifest } from '../destination/stored_manifest.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { overlaps, type TimeRange } from './gaps.ts';
import { type ExportLocation, intervalOf } from './locations.ts';
import { CannotVerify, createFindingCollector, type Finding, type Note } from './report.ts';
import { isErrorType } from '../destination/errors.ts';

/** The location and key of a manifest that has not been read. */
interface ManifestObject {
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
interface Listing {
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
 * @param bound how many intervals there may be; unlimited by default
 * @throws DestinationError when the current location cannot be listed; for other locations a note is added
 * @throws CannotVerify when there are too many intervals, or too many objects that are no manifests
 */
export async function listManifests(
  locations: readonly ExportLocation[],
  range: TimeRange,
  signal: AbortSignal,
  bound?: Bound,
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
          if (!interval) {
            findings.push(misnamedFinding(found.name, 'its name is not an interval'));
            if (findings.length > bounds.misnamedManifests.max)
              throw new CannotVerify(
                `More than ${boundText(bounds.misnamedManifests)} objects in the manifest folder ${location.reader.nameOf(folder)} are not manifests. Delete what other programs wrote there.`,
              );
          } else if (overlaps(interval, range)) {
            const id = `${interval.start} ${interval.end}`;
            const known = intervals.get(id) ?? { ...interval, names: [] };
            if (known.names.every(({ key, location: other }) => key !== found.key || other !== location))
              known.names.push(found);
            intervals.set(id, known);
            if (bound && intervals.size > bound.max)
              throw new CannotVerify(
                `More than ${boundText(bound)} manifests are of this time. Verify a shorter range, or use "exportd verify".`,
              );
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

/** Why an object is no manifest, as a sentence. */
const unsupported = 'The object is not a manifest of a supported version.';

/**
 * Reads a manifest. `manifest` is undefined when the object is not a manifest; `problem` then says why. Returns null when
 * the object does not exist.
 */
export async function readManifest(
  name: ManifestObject,
  signal: AbortSignal,
): Promise<{
  readonly text: string;
  readonly manifest: Manifest | undefined;
  readonly problem: string;
} | null> {
  const object = await name.location.reader.open(name.key, signal);
  if (!object) return null;
  if (object.bytes > bounds.manifest.max) {
    object.close();
    const problem = `The object has ${object.bytes} bytes; a manifest has at most ${boundText(bounds.manifest)}.`;
    return { text: '', manifest: undefined, problem };
  }
  const text = (await buffer(object.chunks)).toString('utf8');
  try {
    const manifest = await parseStoredManifest(text, name.location.reader.foreign);
    return { text, manifest, problem: unsupported };
  } catch (error) {
    if (!isErrorType(error, 'ManifestTooLarge')) throw error;
    return { text: '', manifest: undefined, problem: error.message };
  }
}

/**
 * Finds manifests whose run the journal does not have: it was restored from a backup that is older than the run, or another
 * installation exports to the same prefix. The manifests were read before, so that the journal has the runs of this one.
 */
export async function findUnknownManifests(
  pool: Pool,
  manifests: readonly LoadedManifest[],
): Promise<Finding[]> {
  const ids = new Set(manifests.map(({ manifest }) => manifest.run_id));
  const { rows } = await pool.query<{ id: string }>(
    `select stream_id as id from exportd.journal_streams where stream_type = 'run' and stream_id = any($1::uuid[])
     union all
     select manifest_run_id from exportd.intervals
     where batch_export_id = any($2::uuid[]) and collapsed_generation is not null and manifest_run_id = any($1::uuid[])`,
    // Whatever another program wrote into a manifest is a run that the journal does not have.
    [
      [...ids].filter(isId),
      [...new Set(manifests.map(({ manifest }) => manifest.batch_export_id))].filter(isId),
    ],
  );
  const known = new Set(rows.map(({ id }) => id));
  return manifests
    .filter(({ manifest }) => !known.has(manifest.run_id))
    .flatMap(({ manifest, name }) => {
      const collector = createFindingCollector(intervalOf(manifest), name);
      collector.add(
        'manifest_unknown',
        name,
        `The journal has no run ${manifest.run_id}, which wrote this manifest: the journal was restored from an older backup, or another installation exports to this prefix. Backfill the interval: its run adopts the manifest and writes the next generation.`,
      );
      return collector.findings();
    });
}
