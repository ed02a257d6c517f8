import { ManifestReplaced } from '../destination/destination.ts';
import { manifestOf, type Manifest } from '../destination/manifest.ts';
import { requireActive, type ExistingRun } from '../domain/run.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { adoptManifest } from './adopt_manifest.ts';
import { checkExportedRows } from './replacement/check_replacement.ts';
import { withDestination } from './run_destination.ts';

/** How many unknown manifests one attempt adopts. More of them mean that others publish at the same time. */
const maxAdoptions = 3;

/** Dependencies of publishing. */
export type PublishDependencies = Pick<
  ExportDependencies,
  'recorder' | 'source' | 'openDestination' | 'openLocation' | 'readSelection' | 'mayShrink' | 'logger'
>;

/** The result of publishing, which is stored in the workflow's history. */
export interface PublishOutcome {
  readonly generation: number;
  readonly rows: number;
  readonly manifest_key: string;
}

/**
 * Claims publishing, puts the manifest of an exported run and completes the run. A retry continues with the first missing
 * step. A manifest that the journal does not know is adopted: the run then publishes above it, by the same rules.
 * @throws RowsMissingInSource, RunEnded, DestinationError
 */
export async function publishManifest(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  for (let adoptions = 0; ; adoptions += 1) {
    try {
      return await publishOnce(dependencies, runId, signal);
    } catch (error) {
      if (!(error instanceof ManifestReplaced) || adoptions >= maxAdoptions) throw error;
      await adoptManifest(dependencies, runId, error.found);
    }
  }
}

async function publishOnce(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  const { recorder, source, readSelection } = dependencies;
  const found = await recorder.read(runId);
  const run =
    found.status === 'Completed' ? found : await claimPublishing(dependencies, runId, found, signal);
  return withDestination(dependencies, runId, run, async (destination) => {
    const manifest_key = destination.manifestKey(run.spec);
    const columns = source.columns(run.spec.model, await readSelection(run.spec));
    const manifest = manifestOf(runId, run, columns);
    if (run.status !== 'Completed') {
      const { verified, expires_at } = await destination.putManifest(
        manifest_key,
        manifest,
        {
          isKnown: (other) => isKnown(recorder, run, other),
          // An earlier attempt may have written this manifest.
          mayExist: async () => wasClaimed(found) || recorder.mayHavePublished(run, runId),
        },
        signal,
      );
      if (!verified)
        await recorder.log(
          run,
          runId,
          'WARNING',
          'The manifest was written but could not be read back. Grant the credentials s3:GetObject to have it verified.',
        );
      await recorder.complete(runId, run.generation, manifest_key, expires_at);
    }
    return { generation: run.generation, rows: manifest.rows, manifest_key };
  });
}

/** Whether the journal knows a manifest: the one that the run replaces, or an older one at a former location. */
async function isKnown(
  recorder: PublishDependencies['recorder'],
  run: ExistingRun,
  { run_id, generation }: Manifest,
): Promise<boolean> {
  const replaced = await recorder.findReplaced(run);
  if (replaced?.run_id === run_id && replaced.run.generation === generation) return true;
  return recorder.hasPublished(run, run_id);
}

/** Whether publishing had been claimed before this attempt. */
const wasClaimed = ({ publish_started_at }: ExistingRun): boolean => publish_started_at !== null;

/** Claims publishing, once the exported rows are known to contain those of the manifest that they replace. */
async function claimPublishing(
  dependencies: PublishDependencies,
  runId: string,
  found: ExistingRun,
  signal: AbortSignal,
): Promise<ExistingRun> {
  const run = requireActive(found);
  if (run.publish_started_at !== null) return run;
  await checkExportedRows({ dependencies, runId, progress: { rows: 0 }, signal }, run);
  return dependencies.recorder.startPublish(runId, run.generation);
}
