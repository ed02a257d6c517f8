import type { Manifest } from '../destination/manifest.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { allRows } from '../source/row_selection.ts';
import { differingIndexes, rowsOf, sumsOf } from './bucket_sums.ts';
import { createFindingCollector } from './finding_collector.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { checkSums } from './manifest_sums.ts';
import type { LoadedManifest } from './manifests.ts';
import { intervalOf, rangeOfManifest } from './ranges.ts';

/**
 * Compares the fingerprint of a manifest with the source, without reading its files. Rows and bytes are those that the
 * manifest states.
 */
export async function checkFingerprint(context: CheckContext, found: LoadedManifest): Promise<ManifestCheck> {
  const { manifest, name } = found;
  const collector = createFindingCollector(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, collector, name);
  checkSums(manifest, name, collector);
  const { rows, bytes, model } = manifest;
  const check = { found, collector, rows, bytes, hasKeys: false, disordered: false, misplacedRows: [] };
  if (model === 'persons') {
    collector.note('Its rows were not compared, because persons move to later intervals.');
    return { ...check, source_rows: null };
  }
  const { all_events } = manifest.fingerprint;
  if (all_events)
    collector.note(
      'All events of its interval were compared, because persons decide which of them are selected.',
    );
  const source = await context.source.fingerprint(
    all_events ? { ...range, selection: allRows } : range,
    manifest.fingerprint,
  );
  const exported = sumsOf(manifest.fingerprint);
  const differing = differingIndexes(exported, source);
  if (differing.length > 0) {
    const sources = { manifest: rowsIn(exported, differing), source: rowsIn(source, differing) };
    const [first = 0] = differing;
    collector.add(
      'fingerprint',
      name,
      `The source has other rows than the manifest in ${differing.length} buckets, ${sources.source} instead of ` +
        `${sources.manifest}; the first is ${formatBucket(range.interval, manifest, first)}.`,
      differing.length,
    );
  }
  return { ...check, source_rows: all_events ? null : rowsOf(source) };
}

const rowsIn = (sums: ReturnType<typeof sumsOf>, indexes: readonly number[]): number =>
  indexes.reduce((total, index) => total + (sums.get(index)?.rows ?? 0), 0);

function formatBucket({ start, end }: DataInterval, { fingerprint }: Manifest, index: number): string {
  const from = Date.parse(start) + index * fingerprint.width_ms;
  const until = Math.min(from + fingerprint.width_ms, Date.parse(end));
  return [from, until].map((time) => new Date(time).toISOString()).join(' to ');
}
