import { defaultPayloadConverter } from '@temporalio/common';
import type { WorkflowInterceptorsFactory } from '@temporalio/workflow';

type Activation = Parameters<
  NonNullable<NonNullable<ReturnType<WorkflowInterceptorsFactory>['internals']>[number]['activate']>
>[0]['activation'];
type SignalJob = NonNullable<NonNullable<NonNullable<Activation['jobs']>[number]>['signalWorkflow']>;
type SignalPayload = NonNullable<SignalJob['input']>[number];

/** Longer inputs are not passed on: a signal travels on into local activities and into the next execution. */
const longestInputBytes = 4_096;
const longestNameLength = 100;

/**
 * Makes every signal harmless before the SDK sees it. A payload that it cannot decode, or a name with its reserved
 * prefix, would fail the workflow task again and again, for ever. What stands in for a bad input is a text, which no
 * command accepts, so it ends up refused with a reason.
 */
export const interceptors: WorkflowInterceptorsFactory = () => ({
  internals: [
    {
      activate(input, next) {
        for (const job of input.activation.jobs ?? []) if (job.signalWorkflow) tame(job.signalWorkflow);
        next(input);
      },
    },
  ],
});

function tame(signal: SignalJob): void {
  const { name, payload } = tamed(signal.signalName ?? '', signal.input ?? []);
  signal.signalName = name;
  signal.input = payload ? [payload] : [];
}

/** A signal as the workflow sees it: its name and its one input, if it has one. */
export function tamed(
  name: string,
  inputs: readonly SignalPayload[],
): { readonly name: string; readonly payload: SignalPayload | undefined } {
  const [first, ...others] = inputs;
  const fault = others.length > 0 ? `${others.length + 1} inputs instead of one` : faultOf(first);
  const payload = fault === undefined ? first : defaultPayloadConverter.toPayload(`(not readable: ${fault})`);
  return { name: tameName(name), payload };
}

function tameName(name: string): string {
  // PostgreSQL stores no zero character, and a log line is one line.
  const printable = name.replace(/\p{Cc}/gu, ' ').slice(0, longestNameLength);
  return printable === '' || printable.startsWith('__') ? `(unnamed) ${printable}` : printable;
}

function faultOf(payload: SignalPayload | undefined): string | undefined {
  if (payload === undefined) return undefined;
  const bytes = payload.data?.length ?? 0;
  if (bytes > longestInputBytes) return `${bytes} bytes`;
  try {
    const value: unknown = defaultPayloadConverter.fromPayload(payload);
    return value instanceof Uint8Array ? 'binary data' : undefined;
  } catch {
    return 'unknown encoding';
  }
}
