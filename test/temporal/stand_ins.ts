import type { createExportActivities } from '../../activities/export.ts';
import { withFailures } from '../../activities/failures.ts';
import type { UpkeepActivities } from '../../activities/upkeep.ts';
import type { RunSteps } from '../../src/decisions/run_steps.ts';
import { attemptOf, type SortKey } from '../../src/domain/run.ts';
import type { Source } from '../../src/source/source.ts';
import type { Logger } from '../../src/telemetry/logger.ts';

/** What the stand-ins for source and destination do; a test overrides what it is about. */
export interface Behaviour {
  countRows: () => Promise<number>;
  lookAtBarrier: Source['lookAtBarrier'];
  /** Called inside the export activity, between its first step and its last. */
  whileExporting: (runId: string, range: number) => Promise<void>;
  /** What the clean-up of an export's bucket does; its answer is whether there is more to do at once. */
  cleanUp: (batchExportId: string) => Promise<boolean>;
  /** Where an interval of more rows than EXPORTD_RANGE_ROWS is cut. */
  cuts: () => Promise<readonly SortKey[]>;
}

/** What they do where a test says nothing else. */
export const createBehaviour = (): Behaviour => ({
  countRows: () => Promise.resolve(7),
  cuts: () => Promise.resolve([]),
  lookAtBarrier: () => Promise.resolve({ state: { phase: 'open' }, wait_ms: 0, held_by: [] }),
  whileExporting: () => Promise.resolve(),
  cleanUp: () => Promise.resolve(false),
});

export const standInSource = (behaviour: Behaviour): Source => ({
  columns: () => [],
  lookAtBarrier: (cut, state) => behaviour.lookAtBarrier(cut, state),
  countRows: () => behaviour.countRows(),
  cuts: () => behaviour.cuts(),
  blocks: () => {
    throw new Error('The stand-in has no rows.');
  },
  close: () => Promise.resolve(),
});

export const standInUpkeep = (behaviour: Behaviour, logger: Logger): UpkeepActivities =>
  withFailures(
    {
      cleanUpExport: async ({ batch_export_id }: { batch_export_id: string }) => ({
        removed: 1,
        kept: 0,
        more: await behaviour.cleanUp(batch_export_id),
      }),
      recheckRuns: () => Promise.resolve({ counted: 1, differing: 0, more: false }),
    },
    logger,
  );

export const standInExport = (
  runSteps: RunSteps,
  behaviour: Behaviour,
  logger: Logger,
): ReturnType<typeof createExportActivities> =>
  withFailures(
    {
      exportInterval: async ({ run_id }: { run_id: string }) => {
        await runSteps.beginExport(run_id, 0);
        const { generation } = await runSteps.reserveGeneration(run_id);
        await behaviour.whileExporting(run_id, 0);
        await runSteps.finishExport(run_id, generation, { source_rows: 7, encoder: 'stand-in' });
        return { finished: true, generation, rows: 7, bytes: 7, source_rows: 7 };
      },
      exportRange: async ({ run_id, range }: { run_id: string; range: number }) => {
        const attempt = attemptOf(await runSteps.beginExport(run_id, range), range);
        await behaviour.whileExporting(run_id, range);
        const { generation } = await runSteps.finishRange(run_id, attempt);
        return { finished: true, generation, rows: 1, bytes: 1, source_rows: 0 };
      },
      finishExport: async ({ run_id }: { run_id: string }) => {
        const { generation } = await runSteps.load(run_id);
        await runSteps.finishExport(run_id, generation, { source_rows: 7, encoder: 'stand-in' });
        return { finished: true, generation, rows: 7, bytes: 7, source_rows: 7 };
      },
      publishManifest: async ({ run_id }: { run_id: string }) => {
        const { generation } = await runSteps.load(run_id);
        await runSteps.startPublish(run_id, generation);
        await runSteps.complete(run_id, generation, 'manifest.json');
        return { generation, rows: 7, manifest_key: 'manifest.json' };
      },
    },
    logger,
  );
