import type { Client } from '@temporalio/client';
import type { Pool } from '../../journal/database.ts';
import { wakeSignal } from '../../contract/signals.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { BackfillInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { backfillSummary } from './summaries.ts';
import { ignoreNotFound } from './schedule_client.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Starts and wakes the workflows of backfills. */
export interface BackfillClient {
  /** Wakes the workflow, if it runs. */
  wake(backfillId: string): Promise<void>;
  /** Starts the workflow, or wakes it when it runs. */
  start(backfillId: string): Promise<void>;
  /** Terminates a stuck execution and starts a new one. */
  restart(backfillId: string): Promise<void>;
}

interface BackfillRow {
  readonly batch_export_id: string;
  readonly name: string;
  readonly team_id: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: string;
  readonly model: string;
  readonly destination_type: string;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createBackfillClient(
  client: Client,
  pool: Pool,
  settings: ExecutionSettings,
): BackfillClient {
  const ids = workflowIds(settings);
  const optionsOf = async (backfillId: string) => {
    const { rows } = await pool.query<BackfillRow>(
      `select batch_export_id, export.name, backfill.team_id, backfill.start_at, backfill.end_at, backfill.status,
         export.model, export.destination_type
       from exportd.backfills backfill join exportd.batch_exports export on export.id = batch_export_id
       where backfill.id = $1`,
      [backfillId],
    );
    const [row] = rows;
    if (!row) return undefined;
    const input: BackfillInput = { backfill_id: backfillId };
    return {
      workflowId: ids.backfill(backfillId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      typedSearchAttributes: [
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.model, value: row.model },
        { key: searchAttributes.destination, value: row.destination_type },
        { key: searchAttributes.backfill, value: backfillId },
        { key: searchAttributes.status, value: row.status },
      ],
      staticSummary: backfillSummary(row),
    };
  };
  return {
    wake: async (backfillId) => {
      const handle = client.workflow.getHandle(ids.backfill(backfillId));
      await handle.signal(wakeSignal).catch(ignoreNotFound);
    },
    start: async (backfillId) => {
      const options = await optionsOf(backfillId);
      if (!options) return;
      await client.workflow.signalWithStart(workflowTypes.backfill, { ...options, signal: wakeSignal });
    },
    restart: async (backfillId) => {
      const options = await optionsOf(backfillId);
      if (!options) return;
      await client.workflow.start(workflowTypes.backfill, {
        ...options,
        workflowIdConflictPolicy: 'TERMINATE_EXISTING',
      });
    },
  };
}
