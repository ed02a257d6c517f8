import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Settings } from '../config/settings.ts';
import type { Proxies } from '../network/proxies.ts';
import type { Logger } from './logger.ts';
import type { Tracing } from './trace_provider.ts';

export type TracingSettings = Pick<Settings, 'OTEL_EXPORTER_OTLP_ENDPOINT'>;

/** Whether this process sends traces. */
export const sendsTraces = ({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: TracingSettings): boolean =>
  endpoint !== undefined;

/**
 * Starts to trace this process if `OTEL_EXPORTER_OTLP_ENDPOINT` is set. The other settings of OpenTelemetry are read from
 * the environment by its SDK. Call it before the first connection is opened.
 * @param exporter for tests; by default spans go to the endpoint
 * @returns undefined if this process does not trace; it then loads nothing of the SDK.
 */
export async function startTracing(
  part: 'server' | 'worker',
  settings: TracingSettings & Proxies,
  logger: Logger,
  exporter?: SpanExporter,
): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = settings;
  if (endpoint === undefined) return undefined;
  const { createTracing } = await import('./trace_provider.ts');
  return createTracing(part, logger, { endpoint, proxies: settings }, exporter);
}
