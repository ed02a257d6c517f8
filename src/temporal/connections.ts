import { setTimeout as wait } from 'node:timers/promises';
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Settings } from '../config/settings.ts';
import type { Logger } from '../telemetry/logger.ts';

type TemporalSettings = Pick<Settings, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE'>;
type ClientSettings = TemporalSettings & Pick<Settings, 'EXPORTD_TEMPORAL_REQUEST_TIMEOUT'>;

/** A client, for whoever starts and signals workflows; `close` ends its connection. */
export interface ClientConnection {
  readonly client: Client;
  readonly connection: Connection;
  readonly close: () => Promise<void>;
}

/**
 * A client that connects when it is first used, so that a process can start while Temporal is down. Each of its requests
 * ends within the setting's time, repetitions included, unless `withDeadline` says another; whoever asked decides what
 * then. Without it a request to a Temporal that says nothing would never end.
 */
export function createClient(settings: ClientSettings): ClientConnection {
  const timeoutMs = settings.EXPORTD_TEMPORAL_REQUEST_TIMEOUT;
  const connection = Connection.lazy({
    address: settings.TEMPORAL_ADDRESS,
    connectTimeout: timeoutMs,
    interceptors: [endsWithin(timeoutMs), makeGrpcRetryInterceptor(defaultGrpcRetryOptions())],
  });
  return {
    client: new Client({ connection, namespace: settings.TEMPORAL_NAMESPACE }),
    connection,
    close: () => connection.close(),
  };
}

/** Gives a request that has no deadline this one. */
const endsWithin =
  (timeoutMs: number): Interceptor =>
  (options, nextCall) =>
    new InterceptingCall(nextCall({ ...options, deadline: options.deadline ?? Date.now() + timeoutMs }));

const connectIntervalMs = 1_000;

/** Does what needs Temporal, again and again until Temporal answers; throws the signal's reason when it is aborted. */
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
      logger.warn({ err: error }, 'Temporal does not answer; trying again.');
      await wait(connectIntervalMs, undefined, { signal });
    }
  }
}

/** The connection of a process's workers. */
export const connectWorkers = (settings: TemporalSettings): Promise<NativeConnection> =>
  NativeConnection.connect({ address: settings.TEMPORAL_ADDRESS });
