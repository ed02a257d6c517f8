import type { Client } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { type BackfillInput, wakeSignal } from '../../contract/workflow_inputs.ts';
import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import { type DescribedExport, destinationUri } from '../../decisions/described_export.ts';
import { backfillTraceParent } from '../../decisions/startable_runs.ts';
import type { Pool } from '../../journal/database.ts';
import { inTraceOf } from '../../tracing/spans.ts';
import { taskQueues } from '../task_queues.ts';
import { ignoreNotFound, type StartSettings } from './executions.ts';
import { backfillMetadata } from './user_metadata.ts';

/** Starts and wakes the workflows of backfills. */
export interface BackfillClient {
  /** Wakes the workflow, if it runs. */
  wake(backfillId: string): Promise<void>;
  /** Starts the workflow, or wakes it when it runs. The summary of a new execution shows the reason. */
  start(backfillId: string, reason?: string): Promise<void>;
  /** Terminates a stuck execution and starts a new one, whose summary shows the reason. */
  restart(backfillId: string, reason: string): Promise<void>;
  /** What the Temporal UI says of a backfill, in Markdown; undefined for an unknown one. */
  describe(backfillId: string): Promise<string | undefined>;
}

interface BackfillRow extends Omit<DescribedExport, 'id'> {
  readonly batch_export_id: string;
  readonly team_id: number;
  readonly start_at: string;
  readonly end_at: string;
  readonly status: string;
  readonly destination_type: string;
  /** The trace of the command that created it, as a W3C `traceparent`. */
  readonly trace_parent: string | null;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createBackfillClient(client: Client, pool: Pool, settings: StartSettings): BackfillClient {
  const ids = workflowIds(settings);
  const readBackfill = async (backfillId: string) => {
    const { rows } = await pool.query<BackfillRow>(
      `select backfill.batch_export_id, export.name, backfill.team_id, backfill.start_at, backfill.end_at, backfill.status,
         export.model, export.destination_type, export.interval, export.timezone,
         ${destinationUri('export.id', 'export.config_version')} as destination_uri,
         ${backfillTraceParent('backfill.id')} as trace_parent
       from exportd.backfills backfill join exportd.batch_exports export on export.id = backfill.batch_export_id
       where backfill.id = $1`,
      [backfillId],
    );
    return rows[0];
  };
  const metadataOf = (backfillId: string, row: BackfillRow, reason: string | undefined) =>
    backfillMetadata({ ...row, id: backfillId }, { ...row, id: row.batch_export_id }, settings, reason);
  const optionsOf = (backfillId: string, row: BackfillRow, reason: string | undefined) => {
    const input: BackfillInput = { backfill_id: backfillId };
    return {
      workflowId: ids.backfill(backfillId),
      taskQueue: taskQueues(settings).control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      typedSearchAttributes: [
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.name, value: row.name },
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.model, value: row.model },
        { key: searchAttributes.destination, value: row.destination_type },
        { key: searchAttributes.backfill, value: backfillId },
        { key: searchAttributes.status, value: row.status },
      ],
      ...metadataOf(backfillId, row, reason),
    };
  };
  /** Sends a request in the trace of the command that created the backfill. */
  const send = async (
    backfillId: string,
    reason: string | undefined,
    request: (options: ReturnType<typeof optionsOf>) => Promise<unknown>,
  ): Promise<void> => {
    const row = await readBackfill(backfillId);
    if (!row) return;
    const attributes = {
      'exportd.backfill_id': backfillId,
      'exportd.batch_export_id': row.batch_export_id,
    };
    await inTraceOf(row.trace_parent, 'start backfill', { attributes }, () =>
      request(optionsOf(backfillId, row, reason)),
    );
  };
  return {
    wake: async (backfillId) => {
      const handle = client.workflow.getHandle(ids.backfill(backfillId));
      await handle.signal(wakeSignal).catch(ignoreNotFound);
    },
    start: (backfillId, reason) =>
      send(backfillId, reason, (options) =>
        client.workflow.signalWithStart(workflowTypes.backfill, { ...options, signal: wakeSignal }),
      ),
    restart: (backfillId, reason) =>
      send(backfillId, reason, (options) =>
        client.workflow.start(workflowTypes.backfill, {
          ...options,
          workflowIdConflictPolicy: 'TERMINATE_EXISTING',
        }),
      ),
    describe: async (backfillId) => {
      const row = await readBackfill(backfillId);
      return row && metadataOf(backfillId, row, undefined).staticDetails;
    },
  };
}
