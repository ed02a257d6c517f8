import { forEachItem, type ReconcilerDependencies } from './reconciler.ts';

/** Stores the manual signals of schedules that ended before they stored them. */
export const recoverManualSignals = (dependencies: ReconcilerDependencies): Promise<void> =>
  forEachItem(dependencies, [dependencies.signalRecovery], (signalRecovery) => signalRecovery.recover());
