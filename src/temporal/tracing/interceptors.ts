import type { ClientInterceptors } from '@temporalio/client';
import type { OpenTelemetrySinks } from '@temporalio/interceptors-opentelemetry';
import type { ActivityInterceptorsFactory, InjectedSinks } from '@temporalio/worker';
import { sendsTraces, type TracingSettings } from '../../telemetry/tracing.ts';
import type { Tracing } from '../../telemetry/trace_provider.ts';

// The package loads the SDK of OpenTelemetry, so processes that do not trace do not import it.

/** The interceptors of a client of Temporal. */
export async function clientInterceptors(settings: TracingSettings): Promise<ClientInterceptors> {
  if (!sendsTraces(settings)) return {};
  const { TracedClient } = await import('./client_interceptor.ts');
  return { workflow: [new TracedClient()] };
}

/** The interceptors of activities: a span for each attempt. */
export async function activitySpans(tracing: Tracing | undefined): Promise<ActivityInterceptorsFactory[]> {
  if (!tracing) return [];
  const { OpenTelemetryActivityInboundInterceptor } = await import('@temporalio/interceptors-opentelemetry');
  return [(activity) => ({ inbound: new OpenTelemetryActivityInboundInterceptor(activity) })];
}

/** The sink for spans of workflows. Without tracing it ignores them: a workflow can have started in a process that traces. */
export async function workflowSinks(
  tracing: Tracing | undefined,
): Promise<InjectedSinks<OpenTelemetrySinks>> {
  if (!tracing) return { exporter: { export: { fn: () => undefined } } };
  const { workflowSpanSink } = await import('./workflow_spans.ts');
  return workflowSpanSink(tracing);
}
