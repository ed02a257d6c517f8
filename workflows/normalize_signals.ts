import { defaultPayloadConverter } from '@temporalio/common';
import type { WorkflowInterceptorsFactory } from '@temporalio/workflow';

type Activation = Parameters<
  NonNullable<NonNullable<ReturnType<WorkflowInterceptorsFactory>['internals']>[number]['activate']>
>[0]['activation'];
type SignalJob = NonNullable<NonNullable<NonNullable<Activation['jobs']>[number]>['signalWorkflow']>;
type SignalPayload = NonNullable<SignalJob['input']>[number];

/**
 * Longer inputs are replaced: signals are passed to local activities and to the next execution. These three are bounds of
 * `src/config/bounds.ts`, which workflows cannot import.
 */
const maxInputBytes = 4_096;
const maxNameLength = 100;
const maxIdentityLength = 200;

/**
 * Makes every signal valid before the SDK receives it. A payload that the SDK cannot decode, or a name with its reserved
 * prefix, would fail the workflow task again on every retry. Invalid inputs are replaced by a string, which no command
 * accepts, so the signal is rejected with a reason.
 */
export const interceptors: WorkflowInterceptorsFactory = () => ({
  internals: [
    {
      activate(input, next) {
        for (const job of input.activation.jobs ?? [])
          if (job.signalWorkflow) normalizeInPlace(job.signalWorkflow);
        next(input);
      },
    },
  ],
});

/** The handler of signals gets the identity of the sender as a second input, which the SDK does not show otherwise. */
function normalizeInPlace(signal: SignalJob): void {
  const { name, payload } = normalizeSignal(signal.signalName ?? '', signal.input ?? []);
  signal.signalName = name;
  const input = payload ?? defaultPayloadConverter.toPayload(undefined);
  signal.input = [input, defaultPayloadConverter.toPayload(normalizeIdentity(signal.identity))];
}

/** The identity of a sender in one printable line; undefined if it told none. */
export function normalizeIdentity(identity: string | null | undefined): string | undefined {
  const printable = (identity ?? '').replace(/\p{C}/gu, ' ').trim().slice(0, maxIdentityLength);
  return printable === '' ? undefined : printable;
}

/** Returns the signal as the workflow receives it: a printable name and at most one decodable input. */
export function normalizeSignal(
  name: string,
  inputs: readonly SignalPayload[],
): { readonly name: string; readonly payload: SignalPayload | undefined } {
  const [first, ...others] = inputs;
  const invalid = others.length > 0 ? `${others.length + 1} inputs instead of one` : invalidReason(first);
  const payload =
    invalid === undefined ? first : defaultPayloadConverter.toPayload(`(unreadable: ${invalid})`);
  return { name: normalizeName(name), payload };
}

function normalizeName(name: string): string {
  // PostgreSQL cannot store NUL, and log lines must not contain line breaks.
  const printable = name.replace(/\p{Cc}/gu, ' ').slice(0, maxNameLength);
  return printable === '' || printable.startsWith('__') ? `(unnamed) ${printable}` : printable;
}

function invalidReason(payload: SignalPayload | undefined): string | undefined {
  if (payload === undefined) return undefined;
  const bytes = payload.data?.length ?? 0;
  if (bytes > maxInputBytes) return `${bytes} bytes`;
  try {
    const value: unknown = defaultPayloadConverter.fromPayload(payload);
    return value instanceof Uint8Array ? 'binary data' : undefined;
  } catch {
    return 'unknown encoding';
  }
}
