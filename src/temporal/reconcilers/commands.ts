import { workflowIds } from '../../contract/workflow_ids.ts';
import { describeExecution } from '../clients/executions.ts';
import { isStuck, replacementReason } from './check_executions.ts';
import { pendingCommands } from './expected_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/**
 * Signals the oldest pending command of each export again, in case its first signal was lost. One signal is enough: a
 * schedule decides all pending commands. A schedule that has had a pass to decide it may be stuck, or busy and about to.
 */
export async function reconcileCommands(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { client, journal, schedules, settings } = dependencies;
  const commands = await pendingCommands(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL);
  pass.counts.expected += commands.length;
  await pass.forEachItem(
    commands,
    ({ batch_export_id }) => batch_export_id,
    async (command) => {
      if (command.is_old) {
        const workflowId = workflowIds(settings).schedule(command.batch_export_id);
        const execution = await describeExecution(client, workflowId);
        pass.counts.described += 1;
        if (execution && isStuck(execution)) {
          pass.counts.stuck += 1;
          await schedules.restart(command.batch_export_id, replacementReason(execution));
          return true;
        }
        if (execution?.status === 'RUNNING' && execution.is_busy) return false;
      }
      await schedules.signal(command);
      return true;
    },
  );
}
