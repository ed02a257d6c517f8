import type { QueryKinds } from '../../../src/queries/parse_query.ts';
import { waitFor } from '../../setup/wait_for.ts';
import type { ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';

/** Records the history of an execution as it is now. Without a run id, that of the workflow's latest execution. */
type RecordHistory = (name: string, workflowId: string, runId?: string) => Promise<void>;

/** Leads workflows to states whose histories are recorded, on a control plane of its own. */
export interface Scenario {
  readonly histories: readonly string[];
  readonly settings?: () => Record<string, string>;
  readonly queryKinds?: QueryKinds;
  readonly play: (stack: ControlPlaneHarness, record: RecordHistory) => Promise<void>;
}

/** Waits until a workflow has started: that happens shortly after the command's outcome. */
export const waitUntilStarted = (stack: ControlPlaneHarness, workflowId: string): Promise<boolean> =>
  waitFor(
    () =>
      stack.client.workflow
        .getHandle(workflowId)
        .describe()
        .then(
          () => true,
          () => false,
        ),
    `the start of ${workflowId}`,
  );

/** Waits until a workflow has no task, so that its open history ends at a timer, a signal or an activity. */
export const waitUntilWaiting = (stack: ControlPlaneHarness, workflowId: string): Promise<boolean> =>
  waitFor(async () => {
    const { raw } = await stack.client.workflow.getHandle(workflowId).describe();
    return !raw.pendingWorkflowTask;
  }, `${workflowId} waits`);

/** Waits until a workflow has neither a task nor a remote activity. */
export const waitUntilIdle = (stack: ControlPlaneHarness, workflowId: string): Promise<boolean> =>
  waitFor(async () => {
    const { raw } = await stack.client.workflow.getHandle(workflowId).describe();
    return !raw.pendingWorkflowTask && (raw.pendingActivities ?? []).length === 0;
  }, `${workflowId} is idle`);

/** One execution in a chain of continue-as-new. */
interface ChainLink {
  readonly runId: string;
  /** Its input. */
  readonly input: unknown;
  /** Whether a remote activity completed or failed in it. */
  readonly hasActivity: (result: 'Completed' | 'Failed') => boolean;
  /** Whether it continued as new. */
  readonly isContinued: boolean;
}

/** The executions of a workflow, oldest first. */
export async function readChain(stack: ControlPlaneHarness, workflowId: string): Promise<ChainLink[]> {
  const links: ChainLink[] = [];
  const { raw } = await stack.client.workflow.getHandle(workflowId).describe();
  let runId = raw.workflowExecutionInfo?.firstRunId;
  while (runId) {
    const { events } = await stack.client.workflow.getHandle(workflowId, runId).fetchHistory();
    const last = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes;
    const payload = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
    links.push({
      runId,
      input: JSON.parse(Buffer.from(payload?.data ?? []).toString()),
      hasActivity: (result) =>
        (events ?? []).some((event) =>
          result === 'Completed'
            ? event.activityTaskCompletedEventAttributes
            : event.activityTaskFailedEventAttributes,
        ),
      isContinued: last !== undefined && last !== null,
    });
    runId = last?.newExecutionRunId ?? undefined;
  }
  return links;
}
