import { setTimeout as wait } from 'node:timers/promises';
import { context, diag, DiagLogLevel, propagation, trace, type DiagLogger } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResourcesSync, envDetectorSync, Resource } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { agentOptionsFor, type Proxies } from '../network/proxies.ts';
import type { Logger } from './logger.ts';
import { version } from './version.ts';

/** A process that shuts down waits this long for a collector that does not respond. */
const stopTimeoutMs = 3_000;
/** A collector that is down is reported once in this time. */
const reportIntervalMs = 60_000;

/** The tracing of a process. */
export interface Tracing {
  /** Receives the spans of workflows, which end in a sandbox. */
  readonly spanProcessor: SpanProcessor;
  /** What the spans of this process have in common. */
  readonly resource: Resource;
  /** Sends the last spans, for a few seconds at most, and stops tracing. */
  stop(): Promise<void>;
}

/** Sends spans to the collector of an endpoint, unless OpenTelemetry's own variable for traces names another. */
function createExporter(endpoint: string, proxies: Proxies): SpanExporter {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ofTraces = '' } = process.env;
  const url = URL.canParse(ofTraces) ? ofTraces : endpoint;
  // A collector closes idle connections. The exporter does not send again what such a connection loses.
  return new OTLPTraceExporter({ httpAgentOptions: agentOptionsFor(url, proxies, { keepAlive: false }) });
}

/** Registers the SDK of OpenTelemetry for this process. */
export function createTracing(
  part: 'server' | 'worker',
  logger: Logger,
  { endpoint, proxies }: { readonly endpoint: string; readonly proxies: Proxies },
  exporter: SpanExporter = createExporter(endpoint, proxies),
): Tracing {
  diag.setLogger(failureReporter(logger), { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true });
  const resource = new Resource({
    ...Resource.default().attributes,
    'service.name': `exportd-${part}`,
    'service.version': version,
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    ...detectResourcesSync({ detectors: [envDetectorSync] }).attributes,
  });
  const spanProcessor = new BatchSpanProcessor(exporter);
  const provider = new BasicTracerProvider({ resource, spanProcessors: [spanProcessor] });
  provider.register({ contextManager: new AsyncLocalStorageContextManager().enable() });
  return {
    spanProcessor,
    resource,
    stop: async () => {
      const stopped = new AbortController();
      const stopping = provider.shutdown().catch(() => undefined);
      const timeout = wait(stopTimeoutMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      await Promise.race([stopping, timeout]);
      stopped.abort();
      for (const api of [trace, context, propagation, diag]) api.disable();
    },
  };
}

/** Logs that spans could not be sent, without what the SDK says: it quotes the request. */
function failureReporter(logger: Logger): DiagLogger {
  let reportedAt = -Infinity;
  const ignore = (): void => undefined;
  const error = (): void => {
    if (performance.now() - reportedAt < reportIntervalMs) return;
    reportedAt = performance.now();
    logger.warn(
      'Traces could not be sent. Check OTEL_EXPORTER_OTLP_ENDPOINT and whether its collector accepts OTLP over HTTP.',
    );
  };
  return { error, warn: ignore, info: ignore, debug: ignore, verbose: ignore };
}
