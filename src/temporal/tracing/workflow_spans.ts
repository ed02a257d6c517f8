import { makeWorkflowExporter, type OpenTelemetrySinks } from '@temporalio/interceptors-opentelemetry';
import type { InjectedSinks } from '@temporalio/worker';
import type { Tracing } from '../../telemetry/trace_provider.ts';

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
