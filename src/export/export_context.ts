import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import type { Settings } from '../config/settings.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import type { MayShrink, ReadSelection } from '../destination/config_versions.ts';
import type { DestinationError } from '../destination/destination.ts';
import type { Destination, OpenDestination, OpenLocation } from '../destination/open_destination.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import type { MemoryBudget } from '../encoding/memory.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { RowRange, Source } from '../source/source.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { PublishTarget } from './publish_target.ts';

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
  const found = await recorder.readActive(runId);
  const { release, waited } = await perExportLimit.acquire(found.spec.batch_export_id, signal);
  try {
    const run = waited ? await recorder.readActive(runId) : found;
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

/** Limits how many attempts of one export run at once in this process. */
interface PerExportLimit {
  /**
   * Waits until an attempt of the export may run; its slot is yielded meanwhile.
   * @returns a function that releases the permit, once, and whether others had all permits at first
   * @throws the signal's reason when it is aborted
   */
  readonly acquire: (
    batchExportId: string,
    signal: AbortSignal,
  ) => Promise<{ readonly release: () => void; readonly waited: boolean }>;
}

/**
 * Permits of each export, in order of arrival. They keep an export with very many intervals from occupying every slot for
 * hours. Its cost: an attempt may wait here while another worker has free slots.
 */
export function createPerExportLimit(maxConcurrentPerExport: number, slots: YieldableSlots): PerExportLimit {
  const permits = createKeyedSemaphore<string>({ perKey: maxConcurrentPerExport });
  return {
    acquire: async (id, signal) => {
      let reclaim: (() => void) | undefined;
      let waited = false;
      const onLimited = (): void => {
        waited = true;
        reclaim = slots.yieldSlot();
      };
      try {
        return { release: await permits.acquire(id, { signal, onLimited }), waited };
      } finally {
        reclaim?.();
      }
    },
  };
}

/** Worker slots that a waiting attempt can yield; src/temporal implements them. */
export interface YieldableSlots {
  /**
   * Lets another activity use a slot.
   * @returns a function that reclaims the slot, once; undefined when no more slots may be yielded.
   */
  yieldSlot(): (() => void) | undefined;
}

const checksPerTimeout = 4;

/**
 * Runs `work` and yields its slot while it is stalled: it then waits for a server and needs no CPU.
 * @param stallTimeoutMs after how many milliseconds without a change of `progress` the work is stalled
 * @param work receives a function that reports a stall at once, such as the wait before a request is retried
 */
export async function yieldSlotWhileStalled<Result>(
  slots: YieldableSlots,
  stallTimeoutMs: number,
  progress: () => number,
  work: (onStall: () => void) => Promise<Result>,
): Promise<Result> {
  let lastProgress = progress();
  let lastChange = performance.now();
  let reclaim: (() => void) | undefined;
  const check = (): void => {
    const current = progress();
    if (current !== lastProgress) {
      lastProgress = current;
      lastChange = performance.now();
      reclaim?.();
      reclaim = undefined;
    } else if (!reclaim && performance.now() - lastChange >= stallTimeoutMs) reclaim = slots.yieldSlot();
  };
  const timer = setInterval(check, stallTimeoutMs / checksPerTimeout);
  try {
    return await work(() => {
      reclaim ??= slots.yieldSlot();
    });
  } finally {
    clearInterval(timer);
    reclaim?.();
  }
}
