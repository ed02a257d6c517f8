import type { WorkflowClientInterceptor } from '@temporalio/client';
import {
  makeWorkflowExporter,
  type OpenTelemetrySinks,
  OpenTelemetryWorkflowClientInterceptor,
} from '@temporalio/interceptors-opentelemetry';
import type { InjectedSinks } from '@temporalio/worker';
import type { Tracing } from '../telemetry/trace_provider.ts';
import { isTraced } from '../tracing/spans.ts';

type Input<Method extends keyof WorkflowClientInterceptor> = Parameters<
  NonNullable<WorkflowClientInterceptor[Method]>
>;

/**
 * Spans of requests to Temporal, which pass the trace on to workflows. What starts a workflow begins a trace if there is
 * none; other requests have a span only within a trace, since reconcilers send many.
 */
export class TracedClient extends OpenTelemetryWorkflowClientInterceptor {
  override signal(...[input, next]: Input<'signal'>) {
    return isTraced() ? super.signal(input, next) : next(input);
  }

  override describe(...[input, next]: Input<'describe'>) {
    return isTraced() ? super.describe(input, next) : next(input);
  }

  override cancel(...[input, next]: Input<'cancel'>) {
    return isTraced() ? super.cancel(input, next) : next(input);
  }

  override terminate(...[input, next]: Input<'terminate'>) {
    return isTraced() ? super.terminate(input, next) : next(input);
  }
}

/** The sink that receives the spans of workflows. */
export function workflowSpanSink({ spanProcessor, resource }: Tracing): InjectedSinks<OpenTelemetrySinks> {
  const sink = makeWorkflowExporter(spanProcessor, resource).export;
  return {
    exporter: {
      export: {
        // The package makes every field of the information an attribute. These identify the execution.
        fn: ({ workflowId, runId, workflowType }, spans) =>
          sink.fn({ workflowId, runId, workflowType } as Parameters<typeof sink.fn>[0], spans),
      },
    },
  };
}
