import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { createBackfillClient } from './backfill_client.ts';
import { createMaintenanceClient } from './maintenance_client.ts';
import { createNotificationClient } from './notification_client.ts';
import { createQueryClient } from './query_client.ts';
import { createRunStarter } from './run_starter.ts';
import { createScheduleClient } from './schedule_client.ts';

/** Creates what starts and signals the workflows of each kind, for activities and reconcilers. */
export const createWorkflowClients = (client: Client, pool: Pool, settings: Settings) => ({
  schedules: createScheduleClient(client, settings),
  runs: createRunStarter(client, settings),
  backfills: createBackfillClient(client, pool, settings),
  backgroundQueries: createQueryClient(client, settings),
  maintenance: createMaintenanceClient(client, settings),
  notifications: createNotificationClient(client, pool, settings),
});
