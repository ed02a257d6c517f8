import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { Policies } from '../../decisions/policies.ts';
import { isInvalidRequest, isTemporalError } from '../../failures/grpc_errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { BackgroundQueries } from '../../queries/query_service.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { BackfillClient } from '../clients/backfill_client.ts';
import type { Execution } from '../clients/executions.ts';
import type { MaintenanceClient } from '../clients/maintenance_client.ts';
import type { NotificationClient } from '../clients/notification_client.ts';
import type { RunStarter } from '../clients/run_starter.ts';
import type { ScheduleClient } from '../clients/schedule_client.ts';
import { forEachConcurrently } from '../concurrency.ts';
import type { SignalRecovery } from './signal_recovery.ts';

/** What reconcilers read, and the clients that they repair with. */
export interface ReconcilerDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly client: Client;
  readonly schedules: ScheduleClient;
  readonly runs: RunStarter;
  readonly backfills: BackfillClient;
  readonly maintenance: MaintenanceClient;
  readonly notifications: NotificationClient;
  readonly backgroundQueries: BackgroundQueries;
  readonly signalRecovery: SignalRecovery;
  readonly settings: Pick<
    Settings,
    'EXPORTD_TASK_QUEUE_PREFIX' | 'EXPORTD_RECONCILE_INTERVAL' | 'EXPORTD_QUERY_STATUS_TTL'
  >;
  readonly logger: Logger;
}

/**
 * Compares one kind of workflow with the control database and repairs the differences. It must be repeatable: every pass
 * calls it, and a pass may end anywhere.
 * @throws ServiceError of @temporalio/client when Temporal does not respond; the pass ends then
 */
export type Reconciler = (dependencies: ReconcilerDependencies) => Promise<void>;

/** Concurrent requests to Temporal; few, so that a pass does not slow down the workflows. */
const maxConcurrentRequests = 8;

/**
 * Calls `repair` for every item. An item that fails is logged and does not stop the others. When Temporal does not respond
 * the pass ends, since every further item would fail alike.
 */
export async function forEachItem<Item>(
  { logger }: Pick<ReconcilerDependencies, 'logger'>,
  items: readonly Item[],
  repair: (item: Item) => Promise<unknown>,
): Promise<void> {
  await forEachConcurrently(items, maxConcurrentRequests, async (item) => {
    try {
      await repair(item);
    } catch (error) {
      if (isTemporalError(error) && !isInvalidRequest(error)) throw error;
      logger.error({ err: error, item }, 'The reconciler could not repair an item.');
    }
  });
}

/**
 * A workflow is stuck from this attempt of one workflow task on, about 15 seconds after the first. A killed worker or an
 * overloaded machine costs one or two attempts; an error in the workflow's code fails every attempt.
 */
const stuckAttempt = 5;

/** Whether the workflow task of a running execution keeps failing. */
export const isStuck = (execution: Execution): boolean =>
  execution.status === 'RUNNING' && execution.task_attempt >= stuckAttempt;
