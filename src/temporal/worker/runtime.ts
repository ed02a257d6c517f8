import { DefaultLogger, Runtime, type LogLevel, type Logger as TemporalLogger } from '@temporalio/worker';
import type { Logger } from '../../telemetry/logger.ts';

const levels = { TRACE: 'trace', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

/**
 * Temporal's log as part of the process's own. What the SDK counts as information is detail to exportd: a line for
 * every state of a worker and for every workflow that ends.
 */
const temporalLogger = (logger: Logger): TemporalLogger =>
  new DefaultLogger('DEBUG', ({ level, message, meta }) => {
    logger[levels[level satisfies LogLevel]]({ temporal: plain(meta) }, message);
  });

/** Errors as one line; those of workflows come from another realm, so they are known by their shape. */
const plain = (meta: Record<string | symbol, unknown> | undefined): Record<string, unknown> =>
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

/** Prepares the SDK's native part, once per process and before anything else of it is used. */
export function installRuntime(logger: Logger): void {
  Runtime.install({
    logger: temporalLogger(logger),
    telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
    // The process has its own way to end: workers first, then what they work with.
    shutdownSignals: [],
  });
}
