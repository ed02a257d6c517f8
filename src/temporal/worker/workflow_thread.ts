import { isNativeError } from 'node:util/types';
import { promiseHooks } from 'node:v8';
import { createContext, Script } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import proto from '@temporalio/proto';
import type { WorkflowCreateOptions } from '@temporalio/worker/lib/workflow/interface.js';
import { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import {
  type ActivationRequest,
  type FromWorkflowThread,
  type ToWorkflowThread,
  withoutFunctions,
  type WorkflowThreadOptions,
} from './workflow_messages.ts';

/**
 * The program of the thread that runs workflows, in the sandbox of the SDK. The SDK's own makes a stack trace of each promise,
 * and starts a thread of the system for each of the four or more calls into the sandbox that an activation has, to limit its
 * time: more than half of what workflows cost. This one does neither, and answers an activation with one message.
 */

const { WorkflowActivation } = proto.coresdk.workflow_activation;
const { bundle, activityNames, limitMs } = workerData as WorkflowThreadOptions;

/**
 * Gives errors the lines of their sources. Without the hook that makes a stack trace of each promise, for the query
 * `__stack_trace` alone, which `workflows/stack_traces.ts` answers.
 */
function installErrorHandlers(): void {
  const { createHook } = promiseHooks;
  promiseHooks.createHook = () => () => undefined;
  globalHandlers.install();
  promiseHooks.createHook = createHook;
}

const limited = new Script('call()');
const limitedContext = createContext({});

/** Calls a function that Node interrupts when it takes too long. @throws Error `Script execution timed out` */
function withTimeLimit<Result>(call: () => Result): Result {
  limitedContext.call = call;
  return limited.runInContext(limitedContext, { timeout: limitMs }) as Result;
}

installErrorHandlers();
// Without limits of their own, calls into the sandbox start no thread: all that one activation computes has one limit.
const creator = await ReusableVMWorkflowCreator.create(bundle, undefined as unknown as number, activityNames);
const { workflowByRunId } = ReusableVMWorkflowCreator;

const reply = (message: FromWorkflowThread): void => parentPort?.postMessage(message);

async function activate({ id, runId, options, activation }: ActivationRequest): Promise<void> {
  try {
    // The SDK sets the functions of the information in the sandbox.
    if (options) await creator.createWorkflow(options as WorkflowCreateOptions);
    const workflow = workflowByRunId.get(runId);
    if (!workflow) throw new RangeError(`The thread of workflows has no execution ${runId}.`);
    // What was sent has lost its classes.
    const restored = WorkflowActivation.fromObject(activation);
    const completion = await withTimeLimit(() => workflow.activate(restored));
    const sinkCalls = await workflow.getAndResetSinkCalls();
    reply({
      outcome: 'activated',
      id,
      completion,
      sinkCalls: sinkCalls.map((call) => ({ ...call, workflowInfo: withoutFunctions(call.workflowInfo) })),
    });
  } catch (error) {
    // Also one of the sandbox, which has its own classes.
    const { message, stack } = isNativeError(error) ? error : new Error(String(error));
    reply({ outcome: 'failed', id, message, stack });
  }
}

/** An execution that fails while it is forgotten is forgotten all the same. */
const dispose = async (runId: string): Promise<void> => {
  await workflowByRunId
    .get(runId)
    ?.dispose()
    .catch(() => workflowByRunId.delete(runId));
};

parentPort?.on('message', (message: ToWorkflowThread) => {
  void (message.type === 'activate' ? activate(message) : dispose(message.runId));
});
reply({ outcome: 'started' });
