/**
 * Publishing makes the files of a run visible: `publishManifest` writes the manifest by compare-and-set and completes the run.
 * What may happen in between are the states of `PublishClaim`. In order:
 *
 * 1. `preparePublication` finds the manifest that the run replaces, and checks that the files have its rows.
 * 2. `openTargets` checks what else gets the files, such as a table.
 * 3. `cancelAsRequested` ends a run that was to be cancelled, unless its manifest is in the bucket.
 * 4. `putManifest` of the destination reads what is stored, claims publishing, writes the manifest, and withdraws the claim if
 *    nothing was sent. A manifest that the journal does not know is adopted (`untilAdopted`), and all begins again above it.
 * 5. The targets commit, and `RunCompleted` ends the run.
 *
 * Each step can be repeated: an attempt that finds the manifest of its run only does what is missing after it.
 */
import { DeferredSteps, type PreparedRun } from '../decisions/deferred_steps.ts';
import type { OtherRuns } from '../decisions/replaced_runs.ts';
import { ManifestForeign, ManifestReplaced } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import { requireActive, withBase } from '../domain/run.ts';
import { type ExistingRun, filesOf } from '../domain/run_state.ts';
import type { RowSelection } from '../source/row_selection.ts';
import { checkExportedRows, holdLateRows } from './check_replacement.ts';
import { type ExportDependencies, type OpenedCall, recordRest, withDestination } from './export_context.ts';
import { formatInterval } from './run_interval.ts';
import { createStageClock } from './stage_clock.ts';
import { PublishClaim } from './publish_claim.ts';
import type { Publication, PublishTarget, TargetCommit } from './publish_target.ts';

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
  | 'targets'
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
 * @param prepared the run, if the step before has left it; else it is read
 * @throws RowsMissingInSource, RunEnded, DestinationError
 */
export async function publishManifest(
  dependencies: PublishDependencies,
  runId: string,
  signal: AbortSignal,
  prepared?: PreparedRun,
): Promise<PublishOutcome> {
  let left = prepared;
  return untilAdopted(dependencies, runId, async () => {
    const { run, others, deferred } = left ?? (await dependencies.recorder.readAmongOthers(runId));
    left = undefined;
    // Before the destination is opened, which may send a request.
    if (run.status !== 'Completed') requireActive(run);
    return withDestination(dependencies, runId, run, (destination) =>
      publishOnce(
        {
          dependencies,
          runId,
          destination,
          signal,
          known: { others, written: null, deferred },
        },
        run,
      ),
    );
  });
}

/** What the attempt knows that publishes: it need not be read again. */
interface KnownOfRun {
  /** As they were before the run did anything. */
  readonly others: OtherRuns;
  /** The files of the run's generation; null if they are still to be read. */
  readonly written: readonly CompletedFile[] | null;
  /** Steps that are recorded with the claim. */
  readonly deferred: DeferredSteps;
}

/** Does what `publishManifest` does for a run whose destination is open. */
export async function publishOpened(
  call: Pick<OpenedCall, 'dependencies' | 'runId' | 'destination' | 'selection' | 'signal'>,
  run: ExistingRun,
  known: KnownOfRun,
): Promise<void> {
  const { dependencies, runId } = call;
  let current: ExistingRun | null = run;
  await untilAdopted(dependencies, runId, async () => {
    // After a manifest was adopted, nothing is as it was.
    const published = current ?? (await dependencies.recorder.read(runId));
    const before = current && known;
    current = null;
    try {
      return await publishOnce({ ...call, ...(before && { known: before }) }, published);
    } catch (error) {
      await recordRest(dependencies.recorder, runId, known.deferred);
      throw error;
    }
  });
}

/** Publishes again after a manifest that the journal does not know was adopted. */
async function untilAdopted(
  dependencies: PublishDependencies,
  runId: string,
  publish: () => Promise<PublishOutcome>,
): Promise<PublishOutcome> {
  const stages = createStageClock(dependencies.onStage);
  for (let adoptions = 0; ; adoptions += 1) {
    try {
      return await stages.measure('publish', publish);
    } catch (error) {
      if (!(error instanceof ManifestReplaced) || adoptions >= maxAdoptions) throw error;
      await holdLateRows(dependencies.recorder, runId, await dependencies.recorder.readActive(runId));
      await adoptManifest(dependencies, runId, error.found);
    } finally {
      stages.report();
    }
  }
}

/** What publishing needs. It reads the selection if the export before has not. */
interface PublishCall extends Pick<OpenedCall, 'runId' | 'destination' | 'signal'> {
  readonly dependencies: PublishDependencies;
  readonly selection?: RowSelection;
  readonly known?: KnownOfRun;
}

/** One attempt at the steps of `publishManifest`. @throws ManifestReplaced when the bucket has a manifest to adopt */
async function publishOnce(call: PublishCall, run: ExistingRun): Promise<PublishOutcome> {
  const { dependencies, runId, destination, signal } = call;
  const { recorder, targets } = dependencies;
  const manifest_key = destination.manifestKey(run.spec);
  if (run.status === 'Completed') return outcomeOf(run, manifest_key);
  const publication = await preparePublication(call, requireActive(run));
  const claim = PublishClaim.of(recorder, publication);
  const commits = await openTargets(targets, publication, claim);
  await cancelAsRequested(publication, claim, manifest_key);
  const written = await destination.putManifest(manifest_key, claim, signal);
  if (!written.verified) await recorder.log(run, runId, 'WARNING', unverified);
  // A run whose manifest is written can only complete, so that its commits are never those of a cancelled run.
  for (const { commit } of commits) await commit();
  await recorder.complete(runId, run.generation, manifest_key, written.expires_at);
  return outcomeOf(publication.run, manifest_key);
}

const outcomeOf = (run: ExistingRun, manifest_key: string): PublishOutcome => ({
  generation: run.generation,
  rows: filesOf(withBase(run)).rows,
  manifest_key,
});

const unverified =
  'The manifest was written but could not be read back. Grant the credentials s3:GetObject to have it verified.';

/**
 * Finds out what the run publishes, and which manifest it replaces. Unless an earlier attempt has claimed publishing, its rows
 * are checked against those of that manifest.
 * @throws RowsMissingInSource
 */
async function preparePublication(call: PublishCall, found: ExistingRun): Promise<Publication> {
  const { dependencies, runId, destination, signal } = call;
  const { recorder, source, readSelection } = dependencies;
  const deferred = call.known?.deferred ?? new DeferredSteps();
  const isFirst = call.known?.others.mayReplace === false;
  const active = isFirst || deferred.isEmpty ? found : await recorder.recordDeferred(runId, deferred.take());
  const replaced = isFirst ? null : await recorder.findReplaced(active);
  const run =
    replaced && !PublishClaim.wasMade(active)
      ? await checkExportedRows({ dependencies, runId, progress: { rows: 0 }, signal }, active, replaced)
      : active;
  const { only: _, ...selection } = call.selection ?? (await readSelection(run.spec));
  const columns = source.columns(run.spec.model, selection);
  const files = await findFiles(call, run);
  return { runId, run, replaced, files, columns, selection, destination, signal, deferred };
}

/** The files of the manifest, which are read unless the attempt knows them. */
async function findFiles(
  { dependencies: { recorder }, runId, known }: PublishCall,
  run: ExistingRun,
): Promise<readonly CompletedFile[]> {
  const addsToBase = run.replacement?.base !== undefined;
  if (!addsToBase && filesOf(run).count === 0) return [];
  return (addsToBase ? null : known?.written) ?? recorder.readPublishedFiles(runId, run);
}

/**
 * Opens what gets the files besides the manifest, so that a target that would refuse them is noticed before. Under a claim of
 * an earlier attempt the manifest may be stored: then nothing is refused any more.
 */
async function openTargets(
  targets: readonly PublishTarget[],
  publication: Publication,
  { state }: PublishClaim,
): Promise<readonly TargetCommit[]> {
  const commits: TargetCommit[] = [];
  for (const target of targets) commits.push(await target.open(publication, { checks: state === 'none' }));
  return commits;
}

/** Cancels a run that was to be cancelled under an earlier claim, if its manifest is not in the bucket. @throws RunEnded */
async function cancelAsRequested(
  { run, destination, signal }: Publication,
  claim: PublishClaim,
  manifestKey: string,
): Promise<void> {
  if (run.cancel_requested === null) return;
  if (await destination.hasManifest(manifestKey, claim, signal)) return;
  requireActive(await claim.cancel());
}

/**
 * Records a manifest that the journal does not know as the current one of its interval. The control database may have
 * been restored from a backup, a run may have ended before it could record that it had published, or its history was
 * collapsed, which is no reason to warn.
 * @throws ManifestForeign, RunEnded, GenerationSuperseded
 */
async function adoptManifest(
  { recorder }: Pick<PublishDependencies, 'recorder'>,
  runId: string,
  manifest: Manifest,
): Promise<void> {
  const run = await recorder.readActive(runId);
  // What it names would be read, and deleted by the clean-up.
  const foreign = await recorder.foreignManifestBecause(run, manifest);
  if (foreign !== null) throw new ManifestForeign(formatInterval(run), foreign);
  const isCollapsed = await recorder.isCollapsedRun(run, manifest.run_id);
  const adopted = await recorder.adoptManifest(runId, run.generation, manifest);
  if (isCollapsed) return;
  await recorder.log(
    adopted,
    runId,
    'WARNING',
    `The bucket has a manifest of ${formatInterval(run)} that the journal does not know: generation ${manifest.generation} of ` +
      `run ${manifest.run_id}. The run continues above it, with generation ${adopted.generation}. This is expected after the ` +
      'control database was restored from a backup.',
  );
}
