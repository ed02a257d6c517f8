import type { Settings } from '../config/settings.ts';
import { ManifestReplaced, type ManifestPublication } from '../destination/destination.ts';
import { manifestOf, type Manifest } from '../destination/manifest.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { type ExistingRun, filesOf } from '../domain/run_state.ts';
import { requireActive } from '../domain/run.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import { classifyError } from '../failures/classify_error.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import {
  createStageClock,
  formatInterval,
  withDestination,
  type ExportCall,
  type ExportDependencies,
} from './export_context.ts';
import { checkExportedRows } from './replacement.ts';

/** How many unknown manifests one attempt adopts. More of them mean that others publish at the same time. */
const maxAdoptions = 3;

/** Dependencies of publishing. */
type PublishDependencies = Pick<
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
  // Before the destination is opened, which may send a request.
  if (run.status !== 'Completed') requireActive(run);
  return withDestination(dependencies, runId, run, async (destination) => {
    const manifest_key = destination.manifestKey(run.spec);
    if (run.status !== 'Completed') {
      const replaced = await recorder.findReplaced(run);
      await checkRows({ dependencies, runId, progress: { rows: 0 }, signal }, run, replaced);
      const columns = source.columns(run.spec.model, await readSelection(run.spec));
      const files = await recorder.readFiles(runId, run);
      const publication = publicationOf(recorder, { runId, run, replaced, files, columns });
      const { verified, expires_at } = await destination.putManifest(manifest_key, publication, signal);
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

/** A run that is to be published, and what its manifest contains. */
interface PublishedRun {
  readonly runId: string;
  readonly run: ExistingRun;
  /** The run whose manifest it replaces. Only adopting a manifest changes it, after which publishing starts again. */
  readonly replaced: ReplacedRun | null;
  readonly files: readonly CompletedFile[];
  readonly columns: readonly ExportedColumn[];
}

/** The manifest of a run. It depends on what is decided when publishing is claimed. */
function publicationOf(
  recorder: PublishDependencies['recorder'],
  { runId, run, replaced, files, columns }: PublishedRun,
): ManifestPublication {
  let claimed = run;
  return {
    run_id: runId,
    generation: run.generation,
    files,
    claimed: wasClaimed(run) ? manifestOf(runId, run, files, columns) : null,
    expectsNone: filesOf(run).rows > 0 && replaced === null,
    knows: async (found) => {
      // An earlier attempt may have written a manifest that cannot be read.
      if (!found) return wasClaimed(run) || recorder.mayHavePublished(run, runId);
      // The manifest that the run replaces, or an older one at a former location.
      if (replaced?.run_id === found.run_id && replaced.run.generation === found.generation) return true;
      return recorder.hasPublished(run, found.run_id);
    },
    claim: async () => {
      claimed = await recorder.startPublish(runId, run.generation);
      return manifestOf(runId, claimed, files, columns);
    },
    withdraw: async () => {
      await recorder.withdrawPublish(runId, claimed);
    },
  };
}

/** Whether publishing had been claimed before this attempt. */
const wasClaimed = ({ publish_started_at }: ExistingRun): boolean => publish_started_at !== null;

/** Checks before publishing is claimed that the exported rows contain those of the manifest that they replace. */
async function checkRows(
  call: ExportCall<PublishDependencies>,
  found: ExistingRun,
  replaced: ReplacedRun | null,
): Promise<void> {
  const run = requireActive(found);
  if (!wasClaimed(run) && replaced) await checkExportedRows(call, run, replaced);
}

/**
 * Records a manifest that the journal does not know as the current one of its interval. The control database may have
 * been restored from a backup, or a run may have ended before it could record that it had published.
 * @throws RunEnded, GenerationSuperseded
 */
async function adoptManifest(
  { recorder }: Pick<PublishDependencies, 'recorder'>,
  runId: string,
  manifest: Manifest,
): Promise<void> {
  const run = requireActive(await recorder.read(runId));
  const adopted = await recorder.adoptManifest(runId, run.generation, manifest);
  await recorder.log(
    adopted,
    runId,
    'WARNING',
    `The bucket has a manifest of ${formatInterval(run)} that the journal does not know: generation ${manifest.generation} of ` +
      `run ${manifest.run_id}. The run continues above it, with generation ${adopted.generation}. This is expected after the ` +
      'control database was restored from a backup.',
  );
}

/**
 * Publishes a run without rows in the control worker, which halves the cost of such a run.
 * @returns false when an export worker has to publish it
 * @throws RunEnded, and the signal's reason once it is aborted
 */
export type PublishEmpty = (runId: string, signal: AbortSignal) => Promise<boolean>;

/**
 * Few at a time, and each with a short timeout: a bucket that does not respond can only occupy these slots. Runs that find
 * no free slot, or fail here, are published by the export workers, which have the time to retry.
 */
export function createEmptyPublisher(
  dependencies: PublishDependencies,
  {
    EXPORTD_EMPTY_PUBLISH_SLOTS: slots,
    EXPORTD_EMPTY_PUBLISH_TIMEOUT: timeoutMs,
  }: Pick<Settings, 'EXPORTD_EMPTY_PUBLISH_SLOTS' | 'EXPORTD_EMPTY_PUBLISH_TIMEOUT'>,
): PublishEmpty {
  let usedSlots = 0;
  return async (runId, signal) => {
    if (usedSlots >= slots) return false;
    usedSlots += 1;
    try {
      await publishManifest(dependencies, runId, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (classifyError(error).type === 'RunEnded') throw error;
      return false;
    } finally {
      usedSlots -= 1;
    }
  };
}
