import { DefaultLogger, Runtime, type LogLevel, type Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from '../../telemetry/logger.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/**
 * Writes the SDK's log to the process's log. The SDK's INFO lines, one for every state of a worker and every workflow that
 * ends, are logged as debug.
 */
const temporalLogger = (logger: Logger): TemporalLogger =>
  new DefaultLogger('DEBUG', ({ level, message, meta }) => {
    logger[levels[level satisfies LogLevel]]({ temporal: formatErrors(meta) }, message);
  });

/** Formats errors as one line. Errors of workflows come from another realm, so they are recognized by shape. */
const formatErrors = (meta: Record<string | symbol, unknown> | undefined): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(meta ?? {}).map(([name, value]) => [name, isErrorLike(value) ? describe(value) : value]),
  );

interface ErrorLike {
  readonly name: unknown;
  readonly message: unknown;
  readonly cause?: unknown;
}

const isErrorLike = (value: unknown): value is ErrorLike =>
  typeof value === 'object' && value !== null && 'message' in value && 'name' in value;

const describe = ({ name, message, cause }: ErrorLike): string =>
  `${String(name)}: ${String(message)}${isErrorLike(cause) ? ` (${describe(cause)})` : ''}`;

/** Units and suffixes as Prometheus has them: `temporal_request_latency_seconds`, `temporal_request_total`. */
const metricNames = { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };

/**
 * Installs the SDK's native runtime. Call it once per process, before any other use of the SDK.
 * @param metricsAddress where the SDK serves its own metrics, `host:port`; undefined if nobody reads them
 */
export function installRuntime(logger: Logger, metricsAddress?: string): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: {
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      ...(metricsAddress !== undefined && {
        metrics: { prometheus: { bindAddress: metricsAddress, ...metricNames }, attachServiceName: false },
      }),
    },
    // The process handles signals: it stops the workers first, then their dependencies.
    shutdownSignals: [],
  });
}
