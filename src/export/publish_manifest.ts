import { ManifestReplaced, type ManifestPublication } from '../destination/destination.ts';
import { manifestOf, type Manifest } from '../destination/manifest.ts';
import { filesOf, requireActive, type CompletedFile, type ExistingRun } from '../domain/run.ts';
import type { ExportedColumn } from '../source/source.ts';
import type { ExportDependencies } from './export_dependencies.ts';
import { adoptManifest } from './adopt_manifest.ts';
import { checkExportedRows } from './replacement/check_replacement.ts';
import { withDestination } from './run_destination.ts';
import { createStageClock } from './stage_clock.ts';

/** How many unknown manifests one attempt adopts. More of them mean that others publish at the same time. */
const maxAdoptions = 3;

/** Dependencies of publishing. */
export type PublishDependencies = Pick<
  ExportDependencies,
  | 'recorder'
  | 'source'
  | 'openDestination'
  | 'openLocation'
  | 'readSelection'
  | 'mayShrink'
  | 'onStage'
  | 'logger'
>;

/** The result of publishing, which is stored in the workflow's history. */
export interface PublishOutcome {
  readonly generation: number;
  readonly rows: number;
  readonly manifest_key: string;
}

/**
 * Puts the manifest of an exported run and completes the run. Publishing is claimed once the bucket has responded. A retry
 * continues with the first missing step. A manifest that the journal does not know is adopted: the run then publishes
 * above it, by the same rules.
 * @throws RowsMissingInSource, RunEnded, DestinationError
 */
export async function publishManifest(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  const stages = createStageClock(dependencies.onStage);
  for (let adoptions = 0; ; adoptions += 1) {
    try {
      return await stages.measure('publish', () => publishOnce(dependencies, runId, signal));
    } catch (error) {
      if (!(error instanceof ManifestReplaced) || adoptions >= maxAdoptions) throw error;
      await adoptManifest(dependencies, runId, error.found);
    } finally {
      stages.report();
    }
  }
}

async function publishOnce(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
): Promise<PublishOutcome> {
  const { recorder, source, readSelection } = dependencies;
  const run = await recorder.read(runId);
  return withDestination(dependencies, runId, run, async (destination) => {
    if (run.status !== 'Completed') await checkRows(dependencies, runId, run, signal);
    const manifest_key = destination.manifestKey(run.spec);
    const columns = source.columns(run.spec.model, await readSelection(run.spec));
    if (run.status !== 'Completed') {
      const { verified, expires_at } = await destination.putManifest(
        manifest_key,
        publicationOf(recorder, runId, run, { files: await recorder.readFiles(runId, run), columns }),
        {
          isKnown: (other) => isKnown(recorder, run, other),
          // An earlier attempt may have written this manifest.
          mayExist: async () => wasClaimed(run) || recorder.mayHavePublished(run, runId),
          expectsNone: async () => filesOf(run).rows > 0 && (await recorder.findReplaced(run)) === null,
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
    return { generation: run.generation, rows: filesOf(run).rows, manifest_key };
  });
}

/** The manifest of a run. It depends on what is decided when publishing is claimed. */
function publicationOf(
  recorder: PublishDependencies['recorder'],
  runId: string,
  run: ExistingRun,
  {
    files,
    columns,
  }: { readonly files: readonly CompletedFile[]; readonly columns: readonly ExportedColumn[] },
): ManifestPublication {
  let claimed = run;
  return {
    identity: { run_id: runId, generation: run.generation, files },
    claimed: wasClaimed(run) ? manifestOf(runId, run, files, columns) : null,
    claim: async () => {
      claimed = await recorder.startPublish(runId, run.generation);
      return manifestOf(runId, claimed, files, columns);
    },
    withdraw: async () => {
      await recorder.withdrawPublish(runId, claimed);
    },
  };
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

/** Checks before publishing is claimed that the exported rows contain those of the manifest that they replace. */
async function checkRows(
  dependencies: PublishDependencies,
  runId: string,
  found: ExistingRun,
  signal: AbortSignal,
): Promise<void> {
  const run = requireActive(found);
  if (wasClaimed(run)) return;
  await checkExportedRows({ dependencies, runId, progress: { rows: 0 }, signal }, run);
}
