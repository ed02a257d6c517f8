import { applyDecideDifference } from '../decisions/decide_difference.ts';
import { differenceDecisionJob } from '../decisions/difference_job.ts';
import type { Policies } from '../decisions/policies.ts';
import { batchExportDecider } from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import { finishJob, handlerOf, type JobHandler } from '../jobs/jobs.ts';
import { startBackfill } from './start_backfill.ts';
import { findDifference } from './find_difference.ts';
import type { DifferenceDependencies } from './differing_keys.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** Decides about the rows that the source lacks now. Rejections are for the person who has decided. */
export const createDifferenceDecisionHandler = (
  dependencies: DifferenceDependencies &
    Pick<MaintenanceDependencies, 'backfills' | 'logger'> & { readonly policies: Policies },
): JobHandler =>
  handlerOf(differenceDecisionJob, async ({ id, target, user_id, parameters }, signal) => {
    const { journal, policies } = dependencies;
    const { run_id, start, end, decision, reason, rows: expected } = parameters;
    const { difference, missing, missing_hashes } = await findDifference(dependencies, run_id, signal);
    const { missing_rows: rows } = difference;
    if (expected !== null && expected !== rows)
      throw new CommandRejected(
        'conflict',
        `The source lacks ${rows} rows of the files now, not ${expected}. Read the difference again.`,
      );
    const decided = { start, end, decision, reason, user_id, run_id, rows, missing, missing_hashes };
    const { wake_backfills } = await journal.transaction(async (transaction) => {
      const batchExport = await transaction.lock(batchExportDecider, target);
      const context = { transaction, batchExport, policies, commandId: id, cause: `job:${id}` };
      const effect = await applyDecideDifference(context, decided);
      // Together: an attempt after this one finds nothing to do, and decides nothing twice.
      await finishJob(transaction.connection, id, { result: { rows } });
      return effect;
    });
    for (const backfillId of wake_backfills) await startBackfill(dependencies, backfillId);
    return { rows };
  });
