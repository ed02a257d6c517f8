import type { DeferredSteps } from '../decisions/deferred_steps.ts';
import type { ObsoleteObject } from '../decisions/due_maintenance.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { ExportedColumn, RowSelection } from '../source/row_selection.ts';

/** What a run publishes. */
export interface Publication {
  readonly runId: string;
  readonly run: ExistingRun;
  /** The run whose manifest it replaces. Only adopting a manifest changes it, after which publishing starts again. */
  readonly replaced: ReplacedRun | null;
  /** The files of the manifest, in key order. */
  readonly files: readonly CompletedFile[];
  readonly columns: readonly ExportedColumn[];
  readonly selection: RowSelection;
  readonly destination: Destination;
  readonly signal: AbortSignal;
  /** Steps of the attempt that are recorded with the claim. */
  readonly deferred: DeferredSteps;
}

/** What gets the files of a run besides its manifest, such as a table. Publishing knows no more of it. */
export interface PublishTarget {
  /** Whether the target of a run has the files of the run that it replaces, so that late rows can be added to them. */
  hasFilesOf(replaced: ReplacedRun, run: ExistingRun): Promise<boolean>;
  /**
   * Prepares the commit of a run, before its manifest is written. With `checks` it finds out whether the target would accept
   * the files, so that it does not differ from the manifest later.
   * @throws DestinationError when it would not
   */
  open(publication: Publication, options: { readonly checks: boolean }): Promise<TargetCommit>;
}

/** The commit of a run's files to a target. */
export interface TargetCommit {
  /** Commits once however often it is repeated, after the manifest was written. */
  readonly commit: () => Promise<void>;
}

/** Says why a file of an older generation has to stay, whatever the journal and the manifests say; null if it need not. */
export type FileKeeper = (
  object: Pick<ObsoleteObject, 'model' | 'key'>,
  location: Destination,
) => Promise<string | null>;
