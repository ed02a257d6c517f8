import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Stores the manual signals of schedules that ended before they stored them. */
export async function recoverManualSignals(
  { signalRecovery }: ReconcilerDependencies,
  pass: Pass,
): Promise<void> {
  await pass.forEachItem(
    await signalRecovery.endedSchedules(),
    ({ temporal_run_id }) => temporal_run_id,
    (schedule) => signalRecovery.recover(schedule),
  );
}
