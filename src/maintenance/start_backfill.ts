import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** Starts the workflow of a backfill, such as a repair, or wakes it. One that cannot be reached is logged. */
export async function startBackfill(
  { backfills, logger }: Pick<MaintenanceDependencies, 'backfills' | 'logger'>,
  backfillId: string,
): Promise<void> {
  await backfills.start(backfillId).catch((error: unknown) => {
    logger.warn(
      { err: error, backfill_id: backfillId },
      'The workflow of a backfill could not be started. The reconciler will start it.',
    );
  });
}
