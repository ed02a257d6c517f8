import { context, diag, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base';

/** The spans that this process has ended since the recording was started. */
export interface RecordedSpans {
  readonly spans: () => ReadableSpan[];
  /** The span with a name. @throws Error if there is none, or more than one */
  readonly spanOf: (name: string) => ReadableSpan;
  readonly reset: () => void;
  readonly stop: () => void;
}

/** Registers OpenTelemetry's SDK with an exporter in memory. Stop it, since the registration is global. */
export function recordSpans(): RecordedSpans {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.register({ contextManager: new AsyncLocalStorageContextManager().enable() });
  return {
    spans: () => exporter.getFinishedSpans(),
    spanOf: (name) => {
      const spans = exporter.getFinishedSpans();
      const [found, ...others] = spans.filter((span) => span.name === name);
      if (!found || others.length > 0)
        throw new Error(
          `Expected one span "${name}" among: ${spans.map((span) => span.name).join(', ') || 'none'}.`,
        );
      return found;
    },
    reset: () => exporter.reset(),
    stop: () => {
      for (const api of [trace, context, propagation, diag]) api.disable();
    },
  };
}
