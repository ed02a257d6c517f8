import type { Client } from '@temporalio/client';
// Node does not detect the named exports of this CommonJS module.
import proto from '@temporalio/proto';
import { rounded } from './results.ts';

type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;

const { EventType } = proto.temporal.api.enums.v1;
const localActivityMarker = 'core_local_activity';

/** Cost of a history. */
export interface HistoryCost {
  readonly events: number;
  readonly actions: number;
}

/** Events that are actions, which Temporal Cloud bills. */
const actionTypes = new Set([
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
  EventType.EVENT_TYPE_TIMER_STARTED,
  EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
]);

/**
 * Counts events and actions: starts (including continue-as-new), signals, remote activities, timers, changes of search
 * attributes and patches. All local activities of a workflow task are one action.
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

/** The events of an execution. Without a run id, of the latest execution. */
async function readEvents(
  client: Client,
  execution: { readonly workflowId: string; readonly runId?: string },
): Promise<HistoryEvent[]> {
  const { events } = await client.workflow.getHandle(execution.workflowId, execution.runId).fetchHistory();
  return events ?? [];
}

/** Average cost of the latest executions of some workflow ids. */
export async function averageCost(
  client: Client,
  ids: readonly string[],
): Promise<HistoryCost & { readonly sampled: number }> {
  const costs = [];
  for (const workflowId of ids) costs.push(costOf(await readEvents(client, { workflowId })));
  return { sampled: ids.length, ...shareOf(costs, Math.max(1, ids.length)) };
}

/** Cost of all executions that a workflow continued as, divided among so many runs. */
export async function costPerRun(client: Client, workflowId: string, runs: number): Promise<HistoryCost> {
  const costs = [];
  for await (const { runId } of client.workflow.list({ query: `WorkflowId = '${workflowId}'` }))
    costs.push(costOf(await readEvents(client, { workflowId, runId })));
  return shareOf(costs, runs);
}

const shareOf = (costs: readonly HistoryCost[], share: number): HistoryCost => ({
  events: rounded(costs.reduce((sum, { events }) => sum + events, 0) / share),
  actions: rounded(costs.reduce((sum, { actions }) => sum + actions, 0) / share),
});
