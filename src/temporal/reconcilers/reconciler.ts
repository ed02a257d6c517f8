import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { Policies } from '../../decisions/policies.ts';
import type { Journal } from '../../journal/journal.ts';
import type { BackgroundQueries } from '../../queries/handle_query.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { BackfillClient } from '../clients/backfill_client.ts';
import type { ExecutionLists } from '../clients/execution_lists.ts';
import type { MaintenanceClient } from '../clients/maintenance_client.ts';
import type { NotificationClient } from '../clients/notification_client.ts';
import type { RunStarter } from '../clients/run_starter.ts';
import type { ScheduleClient } from '../clients/schedule_client.ts';
import type { Pass } from './pass.ts';
import type { SignalRecovery } from './signal_recovery.ts';

/** What reconcilers read, and the clients that they repair with. */
export interface ReconcilerDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly client: Client;
  readonly executionLists: ExecutionLists;
  readonly schedules: ScheduleClient;
  readonly runs: RunStarter;
  readonly backfills: BackfillClient;
  readonly maintenance: MaintenanceClient;
  readonly notifications: NotificationClient;
  readonly backgroundQueries: BackgroundQueries;
  readonly signalRecovery: SignalRecovery;
  /** Registers the search attributes that a restored or new namespace lacks. */
  readonly ensureSearchAttributes: (signal: AbortSignal) => Promise<void>;
  readonly settings: Pick<
    Settings,
    | 'EXPORTD_TASK_QUEUE_PREFIX'
    | 'EXPORTD_RECONCILE_INTERVAL'
    | 'EXPORTD_QUERY_STATUS_TTL'
    | 'EXPORTD_QUERY_CACHE_TTL'
    | 'EXPORTD_LOG_RETENTION'
  >;
  readonly logger: Logger;
}

/**
 * Compares one kind of workflow with the control database and repairs the differences. It must be repeatable: every pass
 * calls it, and a pass may end anywhere.
 * @throws when nothing of it can be done, for example because Temporal or the database does not respond
 */
export type Reconciler = (dependencies: ReconcilerDependencies, pass: Pass) => Promise<void>;
