import type { WorkflowClientInterceptor } from '@temporalio/client';
import { OpenTelemetryWorkflowClientInterceptor } from '@temporalio/interceptors-opentelemetry';
import { isTraced } from '../../tracing/spans.ts';

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
