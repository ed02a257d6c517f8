import { defaultPayloadConverter } from '@temporalio/common';
import {
  ApplicationFailure,
  CancelledFailure,
  ContinueAsNew,
  proxySinks,
  workflowInfo,
  type Headers,
  type Sinks,
  type WorkflowInterceptorsFactory,
} from '@temporalio/workflow';
import type { SerializableSpan } from '@temporalio/interceptors-opentelemetry';
import type { ScheduleActivities } from '../activities/schedule.ts';
import { workflowTypes } from '../src/contract/workflow_ids.ts';
import { stackTraces } from './stack_traces.ts';

/** The header in which `@temporalio/interceptors-opentelemetry` passes the W3C `traceparent`. */
const traceHeader = '_tracer-data';

/** A span of a trace, as the header names it. */
interface TracePosition {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

/** They live for years, so their execution is no span. A step of theirs belongs to the trace of the signal that caused it. */
const longLived: ReadonlySet<string> = new Set([workflowTypes.schedule, workflowTypes.maintenance]);

/** The activity that belongs to the step under way. Every other one begins a step. */
const endOfStep = 'startAndCancelRuns' satisfies keyof ScheduleActivities;

/** A span as the sink receives it, with numbers for OpenTelemetry's enumerations. */
interface WorkflowSpan extends Omit<SerializableSpan, 'kind' | 'status'> {
  readonly kind: number;
  readonly status: { readonly code: number; readonly message?: string };
}

interface SpanSinks extends Sinks {
  readonly exporter: { export(spans: WorkflowSpan[]): void };
}

/** The values of OpenTelemetry's enumerations, which the sandbox does not load. */
const internalSpan = 0;
const statusCodes = { unset: 0, ok: 1, error: 2 };

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
 * Interceptors of all workflows.
 *
 * They make every signal valid before the SDK receives it. A payload that the SDK cannot decode, or a name with its reserved
 * prefix, would fail the workflow task again on every retry. Invalid inputs are replaced by a string, which no command
 * accepts, so the signal is rejected with a reason.
 *
 * They also report spans of workflows, and the trace of what they start. The interceptors of the package would load the SDK of
 * OpenTelemetry into every execution; these write the same header and report spans to the same sink. A history without the
 * header replays as if they did not exist. Where an execution waits, `stack_traces.ts` keeps.
 */
export const interceptors: WorkflowInterceptorsFactory = () => {
  /** What activities and the next execution belong to. */
  let current: TracePosition | undefined;
  /** Whether a signal has set it since the last step began. The next step is then the one that the signal caused. */
  let isForNextStep = false;
  let spans = 0;

  /** Derived from the execution and not random, so that a replay gives a span the same id. */
  const nextSpanId = (): string => {
    spans += 1;
    return `${workflowInfo().runId.slice(0, 8)}${spans.toString(16).padStart(8, '0')}`;
  };

  const inHeaders = (headers: Headers): Headers =>
    current === undefined ? headers : { ...headers, [traceHeader]: toHeader(current) };

  const withHeaders = <Input extends { readonly activityType: string; readonly headers: Headers }>(
    input: Input,
  ): Input => {
    if (input.activityType !== endOfStep) isForNextStep = false;
    return { ...input, headers: inHeaders(input.headers) };
  };

  return {
    internals: [
      {
        activate(input, next) {
          for (const job of input.activation.jobs ?? [])
            if (job.signalWorkflow) normalizeInPlace(job.signalWorkflow);
          next(input);
        },
      },
    ],
    inbound: [
      {
        execute: (input, next) => {
          const { workflowType } = workflowInfo();
          const parent = positionIn(input.headers);
          if (!parent || longLived.has(workflowType)) return next(input);
          current = { ...parent, spanId: nextSpanId() };
          return reportExecution(`RunWorkflow:${workflowType}`, current, parent, () => next(input));
        },
        handleSignal: (input, next) => {
          if (!longLived.has(workflowInfo().workflowType)) return next(input);
          const parent = positionIn(input.headers);
          if (parent) {
            const span = { ...parent, spanId: nextSpanId() };
            report(`HandleSignal:${input.signalName}`, span, parent, Date.now(), statusCodes.ok);
            // Of several, the step belongs to the first, which has waited longest.
            if (!isForNextStep) current = span;
            isForNextStep = true;
          } else if (!isForNextStep) current = undefined;
          return next(input);
        },
      },
    ],
    outbound: [
      stackTraces,
      {
        scheduleActivity: (input, next) => next(withHeaders(input)),
        scheduleLocalActivity: (input, next) => next(withHeaders(input)),
        continueAsNew: (input, next) => next({ ...input, headers: inHeaders(input.headers) }),
        startTimer: (input, next) => {
          // The step that a signal caused has ended. A signal that arrived meanwhile causes the next one.
          if (longLived.has(workflowInfo().workflowType) && !isForNextStep) current = undefined;
          return next(input);
        },
      },
    ],
  };
};

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

async function reportExecution(
  name: string,
  span: TracePosition,
  parent: TracePosition,
  execute: () => Promise<unknown>,
): Promise<unknown> {
  const startedAt = Date.now();
  try {
    const result = await execute();
    report(name, span, parent, startedAt, statusCodes.ok);
    return result;
  } catch (error) {
    report(name, span, parent, startedAt, statusOf(error), failureTypeOf(error));
    throw error;
  }
}

const statusOf = (error: unknown): number => {
  if (error instanceof ContinueAsNew) return statusCodes.ok;
  return error instanceof CancelledFailure ? statusCodes.unset : statusCodes.error;
};

/** The type alone: messages name rows. */
const failureTypeOf = (error: unknown): string | undefined => {
  if (error instanceof ContinueAsNew) return undefined;
  if (error instanceof ApplicationFailure) return error.type ?? error.name;
  return error instanceof Error ? error.name : undefined;
};

/** Passes an ended span to the worker. It is not called during a replay. */
function report(
  name: string,
  { traceId, spanId, traceFlags }: TracePosition,
  parent: TracePosition,
  startedAt: number,
  code: number,
  failureType?: string,
): void {
  const endedAt = Date.now();
  const span: WorkflowSpan = {
    name,
    kind: internalSpan,
    spanContext: { traceId, spanId, traceFlags },
    parentSpanId: parent.spanId,
    startTime: toHrTime(startedAt),
    endTime: toHrTime(endedAt),
    duration: toHrTime(endedAt - startedAt),
    status: {
      code,
      ...(code === statusCodes.error && failureType !== undefined && { message: failureType }),
    },
    attributes: { ...(failureType !== undefined && { 'error.type': failureType }) },
    links: [],
    events: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
    instrumentationLibrary: { name: 'exportd' },
  };
  proxySinks<SpanSinks>().exporter.export([span]);
}

/** Seconds and nanoseconds. */
const toHrTime = (milliseconds: number): [number, number] => [
  Math.floor(milliseconds / 1_000),
  (milliseconds % 1_000) * 1_000_000,
];

const toHeader = ({ traceId, spanId, traceFlags }: TracePosition): Headers[string] =>
  defaultPayloadConverter.toPayload({
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
  });

/** The span that headers name. A person can send a signal with any header. */
function positionIn(headers: Headers): TracePosition | undefined {
  const payload = headers[traceHeader];
  if (payload === undefined) return undefined;
  let carrier: unknown;
  try {
    carrier = defaultPayloadConverter.fromPayload(payload);
  } catch {
    return undefined;
  }
  if (typeof carrier !== 'object' || carrier === null || !('traceparent' in carrier)) return undefined;
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(String(carrier.traceparent)) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}
