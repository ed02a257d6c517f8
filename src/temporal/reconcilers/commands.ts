import { pendingCommands } from './expected_executions.ts';
import { forEachItem, type ReconcilerDependencies } from './reconciler.ts';

/** Signals every pending command again, in case its first signal was lost. */
export const reconcileCommands = async (dependencies: ReconcilerDependencies): Promise<void> =>
  forEachItem(dependencies, await pendingCommands(dependencies.journal.pool), (command) =>
    dependencies.schedules.signal(command),
  );
