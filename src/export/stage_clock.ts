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
