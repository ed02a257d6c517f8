import type { Settings } from '../config/settings.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { Destination, OpenDestination, OpenLocation } from '../destination/open_destination.ts';
import type { DestinationError } from '../destination/destination.ts';
import type { MayShrink, ReadSelection } from '../destination/config_versions.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import type { MemoryBudget } from '../encoding/memory.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { RowRange, Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { PerExportLimit } from './per_export_limit.ts';

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
  { dependencies, runId, signal }: ExportCall,
  work: (run: ExistingRun, destination: Destination) => Promise<Result>,
): Promise<Result> {
  const { recorder, perExportLimit } = dependencies;
  const { spec } = await recorder.readActive(runId);
  const release = await perExportLimit.acquire(spec.batch_export_id, signal);
  try {
    const run = await recorder.readActive(runId);
    return await withDestination(dependencies, runId, run, (destination) => work(run, destination));
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
  const onError = ({ type, message, transient }: DestinationError): void => {
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

/** The interval of a run. */
export const intervalOf = (
  spec: Pick<RunSpec, 'data_interval_start' | 'data_interval_end'>,
): DataInterval => ({ start: spec.data_interval_start, end: spec.data_interval_end });

/** The selected rows of a run's interval. */
export const rowRangeOf = (
  spec: Pick<RunSpec, 'model' | 'team_id' | 'data_interval_start' | 'data_interval_end'>,
  selection: RowSelection,
): RowRange => ({ model: spec.model, team_id: spec.team_id, interval: intervalOf(spec), selection });

/** A run's interval as the export's log shows it. */
export const formatInterval = ({ spec }: Pick<ExistingRun, 'spec'>): string =>
  `${spec.data_interval_start} to ${spec.data_interval_end}`;

/** The mark of a key: the start of a token where the store has no conditional writes, else null. */
export const markOf = ({ marksKeys }: Pick<Destination, 'marksKeys'>, token: string): string | null =>
  marksKeys ? token.slice(0, 8) : null;

/** Recorded as the encoder of an interval without rows, which has no file. */
export const noEncoder = 'none';

/** What an attempt waits for, in the order of a run. */
type ExportStage = 'read' | 'encode' | 'upload' | 'publish';

/** Receives the seconds that one attempt waited for a stage. */
export type StageObserver = (stage: ExportStage, seconds: number) => void;

/** Adds up what one attempt waits for. Stages overlap, but their waits do not: together they are its duration. */
export interface StageClock {
  /** Adds the duration of `work` to a stage. */
  measure<Result>(stage: ExportStage, work: () => Promise<Result>): Promise<Result>;
  readonly add: StageObserver;
  /** Reports each stage that was waited for. */
  report(): void;
}

/** Creates the clock of an attempt. */
export function createStageClock(observe: StageObserver | undefined): StageClock {
  const waited = new Map<ExportStage, number>();
  const add: StageClock['add'] = (stage, seconds) => {
    waited.set(stage, (waited.get(stage) ?? 0) + seconds);
  };
  return {
    add,
    measure: async (stage, work) => {
      const startedAt = performance.now();
      try {
        return await work();
      } finally {
        add(stage, (performance.now() - startedAt) / 1_000);
      }
    },
    report: () => {
      for (const [stage, seconds] of waited) observe?.(stage, seconds);
      waited.clear();
    },
  };
}
