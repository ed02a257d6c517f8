import type { Settings } from '../config/settings.ts';
import type { DeferredSteps, PreparedRun } from '../decisions/deferred_steps.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { MayShrink, ReadSelection } from '../destination/config_versions.ts';
import type { DestinationError } from '../destination/destination.ts';
import type { Destination, OpenDestination, OpenLocation } from '../destination/open_destination.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import type { MemoryBudget } from '../encoding/memory.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { PerExportLimit } from './per_export_limit.ts';
import type { PublishTarget } from './publish_target.ts';
import type { StageObserver } from './stage_clock.ts';

/** Dependencies of an export. */
export interface ExportDependencies {
  readonly recorder: RunRecorder;
  readonly source: Source;
  readonly encoders: EncoderPool;
  /** Shared by all exports of the process. */
  readonly memory: MemoryBudget;
  readonly perExportLimit: PerExportLimit;
  readonly openDestination: OpenDestination;
  /** Opens what earlier generations left in a bucket, with retries. */
  readonly openLocation: OpenLocation;
  readonly readSelection: ReadSelection;
  readonly mayShrink: MayShrink;
  /** What gets the files of a run besides its manifest. */
  readonly targets: readonly PublishTarget[];
  /** Measures the stages of attempts; optional. */
  readonly onStage?: StageObserver;
  readonly logger: Logger;
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_ENCODER_THREADS'
    | 'EXPORTD_MAX_REJECTED_ROWS'
    | 'EXPORTD_PARTS_PER_EXECUTION'
    | 'EXPORTD_SOURCE_PAGE_SIZE'
  >;
}

/** Arguments of one activity call. */
export interface ExportCall<Dependencies = ExportDependencies> {
  readonly dependencies: Dependencies;
  readonly runId: string;
  /** Reported with every heartbeat. */
  readonly progress: { rows: number };
  readonly signal: AbortSignal;
  /** The run, if the step before has left it; else it is read. */
  readonly prepared?: PreparedRun;
}

/** A call with the run's destination opened. */
export interface OpenedCall extends ExportCall {
  readonly destination: Destination;
  readonly selection: RowSelection;
}

/**
 * Waits for a permit of the run's export, opens the run's destination and does one step with both.
 * @param work receives the run as it is once the permit is there, since it may have changed meanwhile
 * @throws RunEnded
 */
export async function withPermit<Result>(
  { dependencies, runId, signal, prepared }: ExportCall,
  work: (found: PreparedRun, destination: Destination) => Promise<Result>,
): Promise<Result> {
  const { recorder, perExportLimit } = dependencies;
  const before = prepared ?? (await recorder.readActiveAmongOthers(runId));
  const { release, waited } = await perExportLimit.acquire(before.run.spec.batch_export_id, signal);
  try {
    if (waited && !before.deferred.isEmpty) await recorder.recordDeferred(runId, before.deferred.take());
    const found = waited ? await recorder.readActiveAmongOthers(runId) : before;
    return await withDestination(dependencies, runId, found.run, (destination) => work(found, destination));
  } finally {
    release();
  }
}

/** Opens the run's destination for one activity. Its errors go to the export's log, one line for each type. */
export async function withDestination<Result>(
  { recorder, openDestination, logger }: Pick<ExportDependencies, 'recorder' | 'openDestination' | 'logger'>,
  runId: string,
  run: ExistingRun,
  work: (destination: Destination) => Promise<Result>,
): Promise<Result> {
  const logged = new Set<string>();
  const onError = ({ type, messageForOwner: message, transient }: DestinationError): void => {
    if (logged.has(type)) return;
    logged.add(type);
    recorder
      .log(run, runId, 'WARNING', transient ? `${message} Trying again.` : message)
      .catch(() => logger.warn({ run_id: runId }, "A line of an export's log could not be written."));
  };
  const destination = await openDestination(run.spec, onError);
  try {
    return await work(destination);
  } finally {
    destination.close();
  }
}

/** Records what an attempt that fails has deferred, so that the next one need not find it out. The attempt throws its own error. */
export async function recordRest(
  recorder: Pick<RunRecorder, 'recordDeferred'>,
  runId: string,
  deferred: DeferredSteps,
): Promise<void> {
  if (!deferred.isEmpty) await recorder.recordDeferred(runId, deferred.take()).catch(() => undefined);
}

/** The mark of a key: the start of a token where the store has no conditional writes, else null. */
export const markOf = ({ marksKeys }: Pick<Destination, 'marksKeys'>, token: string): string | null =>
  marksKeys ? token.slice(0, 8) : null;

/** Recorded as the encoder of an interval without rows, which has no file. */
export const noEncoder = 'none';
