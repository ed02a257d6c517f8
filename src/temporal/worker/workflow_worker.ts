import { pathToFileURL } from 'node:url';
import { Worker as Thread } from 'node:worker_threads';
import { type CompiledWorkerOptions, Worker } from '@temporalio/worker';
import { UnexpectedError } from '@temporalio/worker/lib/errors.js';
import type { WorkflowCreator } from '@temporalio/worker/lib/workflow/interface.js';
import type { SinkCall } from '@temporalio/workflow';
import { createUnsafeRandomSource } from '@temporalio/workflow/lib/random-helpers.js';
import { installedPath } from '../../config/installation.ts';
import {
  type ActivationReply,
  type ActivationRequest,
  type FromWorkflowThread,
  type ToWorkflowThread,
  withoutFunctions,
  type WorkflowThreadOptions,
} from './workflow_messages.ts';

const threadProgram = pathToFileURL(installedPath('src/temporal/worker/workflow_thread.ts'));

/** The worker of the SDK, with exportd's own thread for its workflows. */
export class WorkflowWorker extends Worker {
  protected static override createWorkflowCreator(
    bundle: WorkflowThreadOptions['bundle'],
    { activities, isolateExecutionTimeoutMs: limitMs }: CompiledWorkerOptions,
  ): Promise<WorkflowCreator> {
    return startWorkflowThread({ bundle, activityNames: new Set(activities.keys()), limitMs });
  }
}

/**
 * Starts the thread. When it ends by itself, all activations fail with an error that also ends the worker.
 * @throws UnexpectedError when it cannot load the bundle
 */
async function startWorkflowThread(workerData: WorkflowThreadOptions): Promise<WorkflowCreator> {
  const thread = new Thread(threadProgram, { name: 'workflows', workerData });
  const started = Promise.withResolvers<undefined>();
  const pending = new Map<number, PromiseWithResolvers<ActivationReply>>();
  let lastId = 0;
  let cause: unknown;
  let ended: Error | undefined;

  thread.on('message', (message: FromWorkflowThread) => {
    if (message.outcome === 'started') {
      started.resolve(undefined);
      return;
    }
    const asked = pending.get(message.id);
    pending.delete(message.id);
    if (message.outcome === 'activated') asked?.resolve(message);
    else asked?.reject(Object.assign(new Error(message.message), { stack: message.stack }));
  });
  thread.on('error', (error) => (cause = error));
  thread.on('exit', () => {
    ended = new UnexpectedError(`The thread of workflows has ended: ${describe(cause)}`, cause);
    for (const { reject } of [started, ...pending.values()]) reject(ended);
    pending.clear();
  });
  const send = (message: ToWorkflowThread): void => thread.postMessage(message);

  function activate(request: Omit<ActivationRequest, 'type' | 'id'>): Promise<ActivationReply> {
    if (ended) return Promise.reject(ended);
    const asked = Promise.withResolvers<ActivationReply>();
    lastId += 1;
    pending.set(lastId, asked);
    send({ type: 'activate', id: lastId, ...request });
    return asked.promise;
  }

  await started.promise;
  return {
    createWorkflow: ({ info, ...others }) => {
      const { runId } = info;
      let options: ActivationRequest['options'] = { ...others, info: withoutFunctions(info) };
      let sinkCalls: SinkCall[] = [];
      return Promise.resolve({
        activate: async (activation) => {
          const request = { runId, options, activation };
          options = undefined;
          const activated = await activate(request);
          sinkCalls = activated.sinkCalls.map(restoreSinkCall);
          return activated.completion;
        },
        getAndResetSinkCalls: () => {
          const calls = sinkCalls;
          sinkCalls = [];
          return Promise.resolve(calls);
        },
        dispose: () => {
          send({ type: 'dispose', runId });
          return Promise.resolve();
        },
      });
    },
    destroy: async () => {
      await thread.terminate();
    },
  };
}

const restoreSinkCall = ({ workflowInfo, ...call }: ActivationReply['sinkCalls'][number]): SinkCall => ({
  ...call,
  workflowInfo: {
    ...workflowInfo,
    unsafe: { ...workflowInfo.unsafe, now: Date.now, random: createUnsafeRandomSource(Math.random) },
  },
});

/** An error of another thread is not an instance of Error. */
const describe = (thrown: unknown): string =>
  typeof thrown === 'object' && thrown !== null && 'message' in thrown
    ? String(thrown.message)
    : 'it was stopped';
