import type { Client } from '@temporalio/client';
// Of a CommonJS module whose names Node cannot see, only the whole can be imported.
import proto from '@temporalio/proto';
import { forEachConcurrently } from '../../temporal/concurrency.ts';

type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;

const { EventType } = proto.temporal.api.enums.v1;
const requestsAtOnce = 8;
const localActivityMarker = 'core_local_activity';

/** What a history costs. */
export interface HistoryCost {
  readonly events: number;
  readonly actions: number;
}

/** Each of these is an action: what Temporal's cloud bills, and what a server of one's own has to work for. */
const actionTypes = new Set([
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
  EventType.EVENT_TYPE_TIMER_STARTED,
  EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
]);

/**
 * Counts events and billable actions: starts (a continue-as-new is one), signals, remote activities, timers, changes of
 * search attributes, patches; all local activities of one workflow task together are one.
 */
export function costOf(events: readonly HistoryEvent[]): HistoryCost {
  let actions = 0;
  const tasksWithLocalActivities = new Set<string>();
  for (const { eventType, markerRecordedEventAttributes: marker } of events) {
    if (eventType && actionTypes.has(eventType)) actions += 1;
    if (!marker) continue;
    if (marker.markerName === localActivityMarker)
      tasksWithLocalActivities.add(String(marker.workflowTaskCompletedEventId));
    else actions += 1;
  }
  return { events: events.length, actions: actions + tasksWithLocalActivities.size };
}

/** The events of an execution, the latest of the workflow id unless another is named; from a time on. */
export async function readEvents(
  client: Client,
  execution: { readonly workflowId: string; readonly runId?: string },
  since = 0,
): Promise<HistoryEvent[]> {
  const { events } = await client.workflow.getHandle(execution.workflowId, execution.runId).fetchHistory();
  return (events ?? []).filter(({ eventTime }) => millisecondsOf(eventTime) >= since);
}

/** When the first workflow task of each workflow id's latest execution was taken up; milliseconds since 1970. */
export async function firstTasks(
  client: Client,
  workflowIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const taken = new Map<string, number>();
  await forEachConcurrently(workflowIds, requestsAtOnce, async (workflowId) => {
    // Started, task scheduled, task started: no more of it is needed.
    const { history } = await client.workflowService.getWorkflowExecutionHistory({
      namespace: client.options.namespace,
      execution: { workflowId },
      maximumPageSize: 3,
    });
    const first = history?.events?.find(
      ({ eventType }) => eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
    );
    if (first) taken.set(workflowId, millisecondsOf(first.eventTime));
  });
  return taken;
}

/** The longest history of all executions on a task queue. */
export async function largestHistory(
  client: Client,
  taskQueue: string,
): Promise<{ readonly events: number; readonly workflow_id: string }> {
  let largest = { events: 0, workflow_id: '' };
  const note = (workflow_id: string, events: number) => {
    if (events > largest.events) largest = { events, workflow_id };
  };
  const running: { workflowId: string; runId: string }[] = [];
  for await (const execution of client.workflow.list({
    query: `TaskQueue = '${taskQueue}'`,
    pageSize: 1_000,
  }))
    // Of one that runs, a list does not know the length yet.
    if (execution.status.name === 'RUNNING') running.push(execution);
    else note(execution.workflowId, execution.historyLength);
  await forEachConcurrently(running, requestsAtOnce, async ({ workflowId, runId }) => {
    const { historyLength } = await client.workflow.getHandle(workflowId, runId).describe();
    note(workflowId, historyLength);
  });
  return largest;
}

/** All executions of a workflow id, as it was continued. */
export async function executionsOf(
  client: Client,
  workflowId: string,
): Promise<{ workflowId: string; runId: string }[]> {
  const executions = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` }))
    executions.push({ workflowId, runId });
  return executions;
}

const millisecondsOf = (time: HistoryEvent['eventTime']): number =>
  Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6;
