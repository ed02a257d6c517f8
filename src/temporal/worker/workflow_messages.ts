/** The messages between a worker and the thread of its workflows. */
import type { WorkflowCreateOptions, WorkflowCreator } from '@temporalio/worker/lib/workflow/interface.js';
import type { WorkflowBundleWithSourceMapAndFilename } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';
import type { SinkCall, WorkflowInfo } from '@temporalio/workflow';

type Activate = Awaited<ReturnType<WorkflowCreator['createWorkflow']>>['activate'];

/** What the thread is started with. */
export interface WorkflowThreadOptions {
  readonly bundle: WorkflowBundleWithSourceMapAndFilename;
  readonly activityNames: Set<string>;
  /** How long one activation may compute, in milliseconds. */
  readonly limitMs: number;
}

/** What is known of an execution, as it can be sent: without functions, which the SDK sets again. */
type SentInfo = Omit<WorkflowInfo, 'unsafe'> & {
  readonly unsafe: Omit<WorkflowInfo['unsafe'], 'now' | 'random'>;
};

export interface ActivationRequest {
  readonly type: 'activate';
  readonly id: number;
  readonly runId: string;
  /** Creates the workflow, which the thread does not have yet. */
  readonly options: (Omit<WorkflowCreateOptions, 'info'> & { readonly info: SentInfo }) | undefined;
  readonly activation: Parameters<Activate>[0];
}

/** From the worker to the thread. */
export type ToWorkflowThread = ActivationRequest | { readonly type: 'dispose'; readonly runId: string };

export interface ActivationReply {
  readonly outcome: 'activated';
  readonly id: number;
  readonly completion: Awaited<ReturnType<Activate>>;
  readonly sinkCalls: readonly (Omit<SinkCall, 'workflowInfo'> & { readonly workflowInfo: SentInfo })[];
}

/** From the thread to the worker. */
export type FromWorkflowThread =
  | { readonly outcome: 'started' }
  | ActivationReply
  | {
      readonly outcome: 'failed';
      readonly id: number;
      readonly message: string;
      readonly stack: string | undefined;
    };

/** What is known of an execution without its functions. */
export function withoutFunctions({ unsafe, ...info }: WorkflowInfo): SentInfo {
  const { now: _, random: __, ...sent } = unsafe;
  return { ...info, unsafe: sent };
}
