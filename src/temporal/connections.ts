import { setTimeout as wait } from 'node:timers/promises';
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Settings } from '../config/settings.ts';
import type { Logger } from '../telemetry/logger.ts';
import { countRequests } from './request_count.ts';

type TemporalSettings = Pick<Settings, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE'>;
type ClientSettings = TemporalSettings & Pick<Settings, 'EXPORTD_TEMPORAL_REQUEST_TIMEOUT'>;

/** A client with its connection; `close` closes the connection. */
export interface ClientConnection {
  readonly client: Client;
  readonly connection: Connection;
  readonly close: () => Promise<void>;
}

/**
 * Creates a client that connects on first use, so that a process can start while Temporal is down. Each request, with its
 * retries, has the timeout of the setting, unless `withDeadline` sets another. Without a timeout, a request to a Temporal
 * that does not respond would never end.
 */
export function createClient(settings: ClientSettings): ClientConnection {
  const timeoutMs = settings.EXPORTD_TEMPORAL_REQUEST_TIMEOUT;
  const connection = Connection.lazy({
    address: settings.TEMPORAL_ADDRESS,
    connectTimeout: timeoutMs,
    interceptors: [
      countRequests,
      withTimeout(timeoutMs),
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions()),
    ],
  });
  return {
    client: new Client({ connection, namespace: settings.TEMPORAL_NAMESPACE }),
    connection,
    close: () => connection.close(),
  };
}

/** Sets the deadline of requests that have none. */
const withTimeout =
  (timeoutMs: number): Interceptor =>
  (options, nextCall) =>
    new InterceptingCall(nextCall({ ...options, deadline: options.deadline ?? Date.now() + timeoutMs }));

const retryIntervalMs = 1_000;

/** Retries `work`, which needs Temporal, until it succeeds. @throws the signal's reason when it is aborted */
export async function retryUntilTemporalIsUp<Result>(
  work: () => Promise<Result>,
  logger: Logger,
  signal: AbortSignal,
): Promise<Result> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      logger.warn({ err: error }, 'Temporal does not respond. Trying again.');
      await wait(retryIntervalMs, undefined, { signal });
    }
  }
}

/** Connects the workers of a process. */
export const connectWorkers = (settings: TemporalSettings): Promise<NativeConnection> =>
  NativeConnection.connect({ address: settings.TEMPORAL_ADDRESS });
