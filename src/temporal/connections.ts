import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import type { Settings } from '../config/settings.ts';
import { connectionOptions, type ConnectionSettings } from './connection_options.ts';
import { loadPayloadCodecs } from './payload_codecs.ts';
import { countRequests } from './request_count.ts';
import { clientInterceptors } from './tracing/interceptors.ts';

type ClientSettings = ConnectionSettings &
  Pick<
    Settings,
    'EXPORTD_TEMPORAL_REQUEST_TIMEOUT' | 'EXPORTD_PAYLOAD_CODEC_MODULE' | 'OTEL_EXPORTER_OTLP_ENDPOINT'
  >;

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
 * @throws SettingsError when a certificate or the module of the payload codecs cannot be loaded
 */
export async function createClient(settings: ClientSettings): Promise<ClientConnection> {
  const timeoutMs = settings.EXPORTD_TEMPORAL_REQUEST_TIMEOUT;
  const payloadCodecs = await loadPayloadCodecs(settings);
  const interceptors = await clientInterceptors(settings);
  const connection = Connection.lazy({
    ...connectionOptions(settings),
    connectTimeout: timeoutMs,
    interceptors: [
      countRequests,
      withTimeout(timeoutMs),
      makeGrpcRetryInterceptor(defaultGrpcRetryOptions()),
    ],
  });
  return {
    client: new Client({
      connection,
      namespace: settings.TEMPORAL_NAMESPACE,
      dataConverter: { payloadCodecs },
      interceptors,
    }),
    connection,
    close: () => connection.close(),
  };
}

/** Sets the deadline of requests that have none. */
const withTimeout =
  (timeoutMs: number): Interceptor =>
  (options, nextCall) =>
    new InterceptingCall(nextCall({ ...options, deadline: options.deadline ?? Date.now() + timeoutMs }));

/** Connects the workers of a process. */
export const connectWorkers = (settings: ConnectionSettings): Promise<NativeConnection> =>
  NativeConnection.connect(connectionOptions(settings));
