import type { Manifest } from '../../destination/manifest.ts';
import { nothingEarlier } from '../../domain/earlier_generations.ts';
import {
  decidePublish,
  decideWithdrawal,
  requireActive,
  requireGeneration,
  runDecider,
} from '../../domain/run.ts';
import { type ExistingRun, filesOf } from '../../domain/run_state.ts';
import { readState, type Journal } from '../../journal/journal.ts';
import { writeLogLine } from '../../journal/log_lines.ts';
import { readAdoptedManifest } from '../adopted_manifest.ts';
import { startComparisons } from '../due_comparisons.ts';
import { hasPublished, mayHavePublished, readEarlierGenerations } from '../earlier_generations.ts';
import { notifyOfCompletion } from '../notifications.ts';
import { findReplacedRun } from '../replaced_run.ts';
import { logIdsOf, nextGeneration, type RunSteps } from './run_steps.ts';

/** Records how a run publishes its manifest, and what becomes of those before. */
export interface PublishRecorder {
  /**
   * Claims publishing and decides what stays of the generations before. From here on the run cannot be cancelled. Each
   * attempt claims once; `publish_claims` is the number of its claim.
   * @throws ConfigVersionNotFound
   */
  startPublish(runId: string, generation: number): Promise<ExistingRun>;
  /**
   * Withdraws a claim whose attempt sent no manifest, so that the run can be cancelled again. A claim that other attempts
   * continued stays.
   */
  withdrawPublish(
    runId: string,
    claimed: Pick<ExistingRun, 'generation' | 'publish_claims'>,
  ): Promise<ExistingRun>;
  /** Whether a run of the interval published with this id, so that the journal knows its manifest. */
  hasPublished(run: ExistingRun, otherRunId: string): Promise<boolean>;
  /** Whether another run of the interval has claimed publishing, so that its manifest may be stored. */
  mayHavePublished(run: ExistingRun, runId: string): Promise<boolean>;
  /**
   * Records that another manifest than the journal knows is the current one. The run keeps its files, continues with a
   * generation above the manifest's and can be cancelled again.
   */
  adoptManifest(runId: string, generation: number, manifest: Manifest): Promise<ExistingRun>;
  /** `expiresAt`: when a lifecycle rule of the bucket deletes the manifest; null without a rule. */
  complete(runId: string, generation: number, manifestKey: string, expiresAt?: string | null): Promise<void>;
}

/** Creates a recorder of publishing. */
export const createPublishRecorder = (journal: Journal, { step }: RunSteps): PublishRecorder => ({
  startPublish: async (runId, generation) => {
    const { spec } = requireActive(await readState(journal, runDecider, runId));
    const replaced = await findReplacedRun(journal, spec);
    return step(runId, async (stream, { connection }) => {
      const run = requireGeneration(stream.state(), generation);
      const earlier = replaced
        ? await readEarlierGenerations(connection, runId, run, replaced)
        : nothingEarlier;
      await stream.append(`generation:${generation}/publish/${run.publish_claims + 1}`, [
        decidePublish(run, generation, earlier),
      ]);
    });
  },
  withdrawPublish: (runId, { generation, publish_claims }) =>
    step(runId, async (stream) => {
      await stream.append(
        `generation:${generation}/withdrawn/${publish_claims}`,
        decideWithdrawal(stream.state(), generation, publish_claims),
      );
    }),
  hasPublished: (run, otherRunId) => hasPublished(journal.pool, run.spec, otherRunId),
  mayHavePublished: (run, runId) => mayHavePublished(journal.pool, run.spec, runId),
  adoptManifest: async (runId, generation, manifest) => {
    const { spec } = requireActive(await readState(journal, runDecider, runId));
    const found = await readAdoptedManifest(journal.pool, spec, manifest);
    return step(runId, async (stream, transaction) => {
      const run = requireGeneration(stream.state(), generation);
      const raised_to = Math.max(await nextGeneration(transaction, run), found.generation + 1);
      await stream.append(`adopt:${found.run_id}/${found.generation}`, [
        { type: 'RunManifestAdopted', data: { ...found, raised_to } },
      ]);
    });
  },
  complete: async (runId, generation, manifestKey, expiresAt = null) => {
    await step(runId, async (stream, { connection }) => {
      const state = stream.state();
      if (state.status === 'Completed') return;
      const run = requireGeneration(state, generation);
      await stream.append('ended', [
        {
          type: 'RunCompleted',
          data: {
            manifest_key: manifestKey,
            expires_at: expiresAt,
            covers: run.earlier_generations.covers,
          },
        },
      ]);
      const { rows, bytes, count: files } = filesOf(run);
      await startComparisons(connection, runId, run, rows + (run.rejected_file?.rows ?? 0));
      const { data_interval_start: start, data_interval_end: end } = run.spec;
      await writeLogLine(connection, {
        ...logIdsOf(run, runId),
        level: 'INFO',
        message: `Exported ${rows} records of ${start} to ${end}. Manifest: ${manifestKey}.`,
      });
      const removed = describeRemovedRows(run, rows);
      if (removed !== null)
        await writeLogLine(connection, { ...logIdsOf(run, runId), level: 'WARNING', message: removed });
      await notifyOfCompletion(connection, {
        ...logIdsOf(run, runId),
        cause: runId,
        backfill_id: run.spec.backfill_id,
        status: 'Completed',
        latest_error: null,
        data_interval_start: start,
        data_interval_end: end,
        manifest: { manifest_key: manifestKey, generation, rows, bytes, files },
      });
    });
  },
});

/** What a run that was allowed to shrink its interval removes; null if it has as many rows as the former generation. */
function describeRemovedRows({ replacement, rejected_file }: ExistingRun, rows: number): string | null {
  if (replacement?.outcome !== 'shrink_allowed') return null;
  const removed = replacement.bucket_rows - rows - (rejected_file?.rows ?? 0);
  if (removed <= 0) return null;
  return `The run was allowed to remove rows: generation ${replacement.replaced.generation} had ${removed} more. Its files will be deleted.`;
}
