import { deleteExpired } from '../../decisions/retention.ts';
import { deleteExpiredQueries } from '../../queries/results.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Deletes log lines, notifications and incidents that have expired. */
export async function deleteExpiredRows({ journal, settings }: ReconcilerDependencies): Promise<void> {
  await deleteExpired(journal.pool, settings.EXPORTD_LOG_RETENTION);
}

/** Deletes statuses and results of queries that have expired. */
export async function deleteExpiredQueryResults({
  journal,
  settings,
}: ReconcilerDependencies): Promise<void> {
  await deleteExpiredQueries(journal.pool, settings);
}
