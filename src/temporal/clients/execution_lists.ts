import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import type { Settings } from '../../config/settings.ts';
import type { WorkflowType } from '../../contract/workflow_types.ts';
import { isInvalidRequest } from '../../failures/grpc_errors.ts';
import { taskQueues } from '../task_queues.ts';

/** An execution as Temporal lists it, seconds after it changed. */
export interface ListedExecution {
  readonly workflow_id: string;
  readonly temporal_run_id: string;
  /** The run of a run's execution; undefined if it names none. */
  readonly run_id: string | undefined;
}

/**
 * Lists executions of this deployment, 1,000 with a request.
 * @throws ServiceError of @temporalio/client when Temporal does not respond
 */
export interface ExecutionLists {
  /** The running executions of a workflow type. */
  running(workflowType: WorkflowType): Promise<ListedExecution[]>;
  /**
   * The running executions of a workflow type whose workflow task keeps failing, as far as Temporal reports them: from
   * server 1.30 on, where the operator has not switched it off. Empty if it reports none.
   */
  withTaskProblems(workflowType: WorkflowType): Promise<ListedExecution[]>;
  /** The executions of a workflow type that were closed since a time, but not by their own decision. */
  closedAbnormally(workflowType: WorkflowType, since: Date): Promise<ListedExecution[]>;
}

/** The most that Temporal returns with a request, unless its operator has changed that. */
const pageSize = 1_000;

/** A server that does not report problems of workflow tasks is asked again after this time: it may have been upgraded. */
const unsupportedMs = 3_600_000;

/** Creates the lists. They skip what they cannot decode, which a manually started workflow may contain. */
export function createExecutionLists(
  client: Client,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): ExecutionLists {
  let problemsUnsupportedUntil = 0;
  const list = async (workflowType: WorkflowType, condition: string): Promise<ListedExecution[]> => {
    const executions: ListedExecution[] = [];
    let nextPageToken: Uint8Array = new Uint8Array();
    do {
      const page = await client.workflowService.listWorkflowExecutions({
        namespace: client.options.namespace,
        query: `WorkflowType = '${workflowType}' AND TaskQueue = '${taskQueues(settings).control}' AND ${condition}`,
        pageSize,
        nextPageToken,
      });
      executions.push(...page.executions.map(toListedExecution));
      ({ nextPageToken } = page);
    } while (nextPageToken.length > 0);
    return executions;
  };
  return {
    running: (workflowType) => list(workflowType, `ExecutionStatus = 'Running'`),
    withTaskProblems: async (workflowType) => {
      if (performance.now() < problemsUnsupportedUntil) return [];
      try {
        return await list(
          workflowType,
          `ExecutionStatus = 'Running' AND ` +
            `TemporalReportedProblems IN ('category=WorkflowTaskFailed', 'category=WorkflowTaskTimedOut')`,
        );
      } catch (error) {
        // A server that does not know the attribute rejects the query.
        if (!isInvalidRequest(error)) throw error;
        problemsUnsupportedUntil = performance.now() + unsupportedMs;
        return [];
      }
    },
    closedAbnormally: (workflowType, since) =>
      list(
        workflowType,
        `ExecutionStatus IN ('Failed', 'Terminated', 'Canceled', 'TimedOut') AND CloseTime > '${since.toISOString()}'`,
      ),
  };
}

type Payload = temporal.api.common.v1.IPayload;

const toListedExecution = ({
  execution,
  memo,
  searchAttributes: attributes,
}: temporal.api.workflow.v1.IWorkflowExecutionInfo): ListedExecution => ({
  workflow_id: execution?.workflowId ?? '',
  temporal_run_id: execution?.runId ?? '',
  run_id: textOf(memo?.fields?.run_id) ?? textOf(attributes?.indexedFields?.[searchAttributes.run.name]),
});

/** Decodes a text; undefined if it is none, or encoded by a payload codec. */
function textOf(payload: Payload | undefined): string | undefined {
  try {
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
