import type { WorkflowOutboundCallsInterceptor } from '@temporalio/workflow';
import { getActivator } from '@temporalio/workflow/lib/global-attributes.js';

// Between the workflow and a wait are a dozen of the SDK.
Error.stackTraceLimit = 20;

/** Frames of the SDK and of these interceptors, which are the same in every stack. */
const foreignFrame = /node_modules\/|node:|file:|<anonymous>|workflows\/(?:stack_traces|interceptors)\.ts/;

const ownFrames = ({ stack = '' }: Error): string =>
  stack
    .split('\n')
    .filter((line) => line.startsWith('    at ') && !foreignFrame.test(line))
    .join('\n');

/**
 * Keeps where an execution waits until it does no longer, for the query `__stack_trace` (_Call Stack_ of the Temporal UI). The
 * SDK would write a trace of each promise; these become text when they are asked for.
 */
export function traced<Result>(wait: Promise<Result>): Promise<Result> {
  const { childToParent, promiseToStack } = getActivator().promiseStackStore;
  const place = new Error();
  childToParent.set(wait, new Set());
  promiseToStack.set(wait, {
    get formatted() {
      return ownFrames(place);
    },
    structured: [],
  });
  const forget = () => {
    childToParent.delete(wait);
    promiseToStack.delete(wait);
  };
  void wait.then(forget, forget);
  return wait;
}

/** Traces the calls that wait. */
export const stackTraces: WorkflowOutboundCallsInterceptor = {
  scheduleActivity: (input, next) => traced(next(input)),
  scheduleLocalActivity: (input, next) => traced(next(input)),
  startTimer: (input, next) => traced(next(input)),
};
