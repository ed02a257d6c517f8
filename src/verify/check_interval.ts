import type { DataInterval } from '../domain/intervals.ts';
import { checkManifest } from './check_manifest.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { intervalOf } from './ranges.ts';
import { readManifest, type FoundManifest, type NamedInterval } from './manifests.ts';
import { createFindingCollector } from './finding_collector.ts';
import type { Finding, Note } from './report.ts';

/** How often an interval is checked anew because it was exported again meanwhile. */
const roundsMaximum = 5;

/** What was found of one interval. */
export interface IntervalCheck {
  readonly interval: DataInterval;
  /** The manifest that counts; null when there is none that can be read. */
  readonly check: ManifestCheck | null;
  /** What is wrong with the manifests themselves. */
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

/**
 * Checks the manifest of an interval. When something is wrong and the manifest has been replaced meanwhile, what was
 * found may be of the files that it named before, so it is checked anew.
 */
export async function checkInterval(context: CheckContext, interval: NamedInterval): Promise<IntervalCheck> {
  for (let round = 1; ; round += 1) {
    const { current, findings, notes } = await chooseManifest(context, interval);
    if (!current) return { interval, check: null, findings, notes };
    const check = await checkManifest(context, current);
    const isWell = check.collector.findings().length === 0 && check.misplacedRows.length === 0;
    if (isWell || round === roundsMaximum || !(await isReplaced(context, current)))
      return { interval, check, findings, notes };
  }
}

const isReplaced = async ({ signal }: CheckContext, found: FoundManifest): Promise<boolean> =>
  (await readManifest(found, signal))?.text !== found.text;

/** Reads the manifests of an interval; the highest generation counts. */
async function chooseManifest(
  { definition, signal }: CheckContext,
  interval: NamedInterval,
): Promise<{ current: FoundManifest | null; findings: readonly Finding[]; notes: readonly Note[] }> {
  const collector = createFindingCollector(interval, '');
  const manifests: FoundManifest[] = [];
  for (const name of interval.names) {
    const read = await readManifest(name, signal);
    if (!read) continue;
    const { manifest, text } = read;
    if (!manifest)
      collector.add(
        'manifest_unreadable',
        name.name,
        'It is not a manifest of a version that is known here.',
      );
    else if (manifest.batch_export_id !== definition.batch_export_id)
      collector.add(
        'manifest_misnamed',
        name.name,
        `It says that it is of the batch export ${manifest.batch_export_id}.`,
      );
    else if (!isSame(interval, intervalOf(manifest)))
      collector.add(
        'manifest_misnamed',
        name.name,
        `It says that it is of ${manifest.data_interval_start} to ${manifest.data_interval_end}.`,
      );
    else manifests.push({ ...name, manifest, text });
  }
  manifests.sort((one, other) => other.manifest.generation - one.manifest.generation);
  const [current, ...older] = manifests;
  for (const { name, manifest } of older)
    collector.note(
      `${name} is of generation ${manifest.generation}; generation ${current?.manifest.generation} counts, ${current?.name}.`,
    );
  return { current: current ?? null, findings: collector.findings(), notes: collector.notes() };
}

const isSame = (one: { start: string; end: string }, other: { start: string; end: string }): boolean =>
  one.start === other.start && one.end === other.end;
