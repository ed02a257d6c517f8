import type { Manifest } from '../destination/manifest.ts';
import { selectionOfConfig } from '../destination/config_versions.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RowRange } from '../source/source.ts';
import { allRows } from '../source/row_selection.ts';
import type { ExportDefinition, FindVersion } from './locations.ts';
import type { FindingCollector } from './finding_collector.ts';

/** The interval of a manifest. */
export const intervalOf = ({ data_interval_start, data_interval_end }: Manifest): DataInterval => ({
  start: new Date(data_interval_start).toISOString(),
  end: new Date(data_interval_end).toISOString(),
});

/** Dependencies for creating ranges. */
export interface RangeContext {
  readonly definition: ExportDefinition;
  readonly findVersion: FindVersion;
}

/**
 * The rows of the source that a manifest should contain, according to its model and config version. If the version
 * does not exist, this is reported and the current version is used.
 */
export async function rangeOfManifest(
  context: RangeContext,
  manifest: Manifest,
  collector: FindingCollector,
  name: string,
): Promise<RowRange> {
  const range = await currentRange(context, intervalOf(manifest));
  const version = await context.findVersion(manifest.config_version);
  if (!version)
    collector.add(
      'manifest_inconsistent',
      name,
      `The export has no config version ${manifest.config_version}.`,
    );
  return {
    ...range,
    model: manifest.model,
    selection: version ? selectionOfConfig(version) : range.selection,
  };
}

/** The rows of an interval that the export would select now. */
export async function currentRange(
  { definition, findVersion }: RangeContext,
  interval: DataInterval,
): Promise<RowRange> {
  const { model, team_id, config_version } = definition;
  const version = await findVersion(config_version);
  return { model, team_id, interval, selection: version ? selectionOfConfig(version) : allRows };
}
