/**
 * The claim of a run on publishing. The journal has it before the manifest is sent: from then on the manifest may be stored,
 * and a cancellation asks the bucket first. Its states, as one attempt sees them:
 *
 *     none ──── hold ───> held ──── the manifest was sent ───> RunCompleted, or the next attempt finds the claim
 *      ^                   │
 *      └──── withdraw ─────┘   nothing was sent, or the store refused it
 *
 *     found ─── hold ───> held      an earlier attempt had it, whose manifest may be stored
 *      │
 *      └─────── cancel ─> ended     the run was to be cancelled, and its manifest is not in the bucket
 *
 * `hold` records RunPublishStarted, or RunPublishResumed under a claim that was found. Each `hold` has a number, so that
 * `withdraw` and `cancel` do nothing once another attempt has continued. A claim that others have continued is not
 * withdrawn, and neither is one that the run inherited from a failed one (`claimed_by`): those may have sent a manifest.
 */
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { ManifestClaim } from '../destination/destination.ts';
import { type Manifest, manifestOf } from '../destination/manifest.ts';
import { type ExistingRun, filesOf } from '../domain/run_state.ts';
import type { Publication } from './publish_target.ts';

type ClaimRecorder = Pick<
  RunRecorder,
  'startPublish' | 'withdrawPublish' | 'cancelAsRequested' | 'hasPublished' | 'mayHavePublished'
>;

export class PublishClaim implements ManifestClaim {
  readonly #recorder: ClaimRecorder;
  readonly #publication: Publication;
  /** The run as the journal had it when the claim was found, held or withdrawn last. */
  #run: ExistingRun;
  #state: 'none' | 'found' | 'held';

  private constructor(recorder: ClaimRecorder, publication: Publication) {
    this.#recorder = recorder;
    this.#publication = publication;
    this.#run = publication.run;
    this.#state = PublishClaim.wasMade(publication.run) ? 'found' : 'none';
  }

  /** The claim of an attempt that publishes. */
  static of(recorder: ClaimRecorder, publication: Publication): PublishClaim {
    return new PublishClaim(recorder, publication);
  }

  /** Whether an attempt has claimed publishing of a run. */
  static wasMade({ phase }: ExistingRun): boolean {
    return phase.name === 'publishing';
  }

  /** `none`; `found`: that of an earlier attempt, which may have written the manifest; `held`: that of this attempt. */
  get state(): 'none' | 'found' | 'held' {
    return this.#state;
  }

  get run_id(): string {
    return this.#publication.runId;
  }

  get generation(): number {
    return this.#publication.run.generation;
  }

  get claimed_by(): readonly string[] {
    return this.#publication.run.claimed_by;
  }

  get files(): Publication['files'] {
    return this.#publication.files;
  }

  get manifest(): Manifest | null {
    if (this.#state === 'none') return null;
    const { runId, files, columns, destination } = this.#publication;
    return manifestOf(runId, this.#run, files, columns, destination.partitionColumns);
  }

  get expectsNone(): boolean {
    const { run, replaced } = this.#publication;
    return filesOf(run).rows > 0 && replaced === null && run.claimed_by.length === 0;
  }

  async knows(found: Manifest | null): Promise<boolean> {
    const { runId, run, replaced } = this.#publication;
    // An earlier attempt may have written a manifest that cannot be read.
    if (!found) return PublishClaim.wasMade(run) || this.#recorder.mayHavePublished(run, runId);
    // The manifest that the run replaces, or an older one at a former location.
    if (replaced?.run_id === found.run_id && replaced.run.generation === found.generation) return true;
    return this.#recorder.hasPublished(run, found.run_id);
  }

  async hold(): Promise<Manifest> {
    const { runId, run, replaced, files, columns, destination, deferred } = this.#publication;
    if (this.#state !== 'held') {
      this.#run = await this.#recorder.startPublish(runId, run.generation, replaced, deferred.take());
      this.#state = 'held';
    }
    return manifestOf(runId, this.#run, files, columns, destination.partitionColumns);
  }

  async withdraw(): Promise<void> {
    if (this.#state !== 'held') return;
    this.#run = await this.#recorder.withdrawPublish(this.run_id, this.#run);
    this.#state = PublishClaim.wasMade(this.#run) ? 'found' : 'none';
  }

  /** Cancels the run as was requested, unless another attempt has continued under the claim. @returns the run after it */
  cancel(): Promise<ExistingRun> {
    return this.#recorder.cancelAsRequested(this.run_id, this.#run);
  }
}
