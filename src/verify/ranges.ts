import type { Manifest } from '../destination/manifest.ts';
import { storedSelection } from '../destination/row_selections.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RowRange } from '../source/source.ts';
import { everyRow } from '../source/row_selection.ts';
import type { ExportDefinition, FindVersion } from './locations.ts';
import type { FindingCollector } from './finding_collector.ts';

/** The interval of a manifest. */
export const intervalOf = ({ data_interval_start, data_interval_end }: Manifest): DataInterval => ({
  start: new Date(data_interval_start).toISOString(),
  end: new Date(data_interval_end).toISOString(),
});

/** What ranges are made of. */
export interface RangeContext {
  readonly definition: ExportDefinition;
  readonly findVersion: FindVersion;
}

/**
 * The rows of the source that a manifest is to have: of its model, as its version of the config selects them. A version
 * that there is not is tallied; the one in force then stands for it.
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
      `The export's config has no version ${manifest.config_version}.`,
    );
  return { ...range, model: manifest.model, selection: version ? storedSelection(version) : range.selection };
}

/** The rows of the source that the export would take of an interval now. */
export async function currentRange(
  { definition, findVersion }: RangeContext,
  interval: DataInterval,
): Promise<RowRange> {
  const { model, team_id, config_version } = definition;
  const version = await findVersion(config_version);
  return { model, team_id, interval, selection: version ? storedSelection(version) : everyRow };
}
