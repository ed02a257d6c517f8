import type { Resource } from '@opentelemetry/resources';
import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Settings } from '../config/settings.ts';
import type { Logger } from './logger.ts';

export type TracingSettings = Pick<Settings, 'OTEL_EXPORTER_OTLP_ENDPOINT'>;

/** Whether this process sends traces. */
export const sendsTraces = ({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: TracingSettings): boolean =>
  endpoint !== undefined;

/** The tracing of a process. */
export interface Tracing {
  /** Receives the spans of workflows, which end in a sandbox. */
  readonly spanProcessor: SpanProcessor;
  /** What the spans of this process have in common. */
  readonly resource: Resource;
  /** Sends the last spans, for a few seconds at most, and stops tracing. */
  stop(): Promise<void>;
}

/**
 * Starts to trace this process if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. The other settings of OpenTelemetry are read from
 * the environment by its SDK. Call it before the first connection is opened.
 * @param exporter for tests; by default spans go to the endpoint
 * @returns undefined if this process does not trace; it then loads nothing of the SDK.
 */
export async function startTracing(
  part: 'server' | 'worker',
  settings: TracingSettings,
  logger: Logger,
  exporter?: SpanExporter,
): Promise<Tracing | undefined> {
  if (!sendsTraces(settings)) return undefined;
  const { createTracing } = await import('./trace_provider.ts');
  return createTracing(part, logger, exporter);
}
