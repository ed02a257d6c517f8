import { DefaultLogger, Runtime, type LogLevel, type Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/**
 * Temporal's log as part of the process's own. What the SDK counts as information is detail to exportd: a line for
 * every state of a worker and for every workflow that ends.
 */
export const temporalLogger = (logger: Logger): TemporalLogger =>
  new DefaultLogger('DEBUG', ({ level, message, meta }) => {
    logger[levels[level satisfies LogLevel]]({ temporal: plain(meta) }, message);
  });

/** Metadata without the error's stack members that pino would not print from inside an object. */
const plain = (meta: Record<string | symbol, unknown> | undefined): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(meta ?? {}).map(([name, value]) => [
      name,
      value instanceof Error ? `${value.name}: ${value.message}` : value,
    ]),
  );

/** Prepares the SDK's native part, once per process and before anything else of it is used. */
export function installRuntime(logger: Logger): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
    // The process has its own way to end: workers first, then what they work with.
    shutdownSignals: [],
  });
}
