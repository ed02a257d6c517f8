import { AsyncLocalStorage } from 'node:async_hooks';
import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import {
  Client,
  type ClientInterceptors,
  Connection,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import { toClientOptions } from '@temporalio/envconfig';
import type { NativeConnection } from '@temporalio/worker';
import { type Settings, SettingsError } from '../config/settings.ts';
import { sendsTraces, type TracingSettings } from '../telemetry/tracing.ts';
import { loadPayloadCodecs } from './payload_codecs.ts';

/** The settings of a connection. */
export type ConnectionSettings = Pick<
  Settings,
  'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE' | 'temporal_profile'
>;

/**
 * Options of a client's or a worker's connection. Certificates are read now, so a process has to be restarted after they
 * were renewed.
 * @throws SettingsError when a certificate or key cannot be read
 */
export function connectionOptions({ TEMPORAL_ADDRESS, temporal_profile }: ConnectionSettings) {
  try {
    const { apiKey, tls, metadata } = toClientOptions(temporal_profile).connectionOptions;
    if (typeof tls === 'object' && tls !== null) checkCertificates(tls);
    return {
      address: TEMPORAL_ADDRESS,
      ...(apiKey !== undefined && { apiKey }),
      ...(tls !== undefined && tls !== null && { tls }),
      ...(metadata !== undefined && { metadata }),
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(
      `The certificates for Temporal cannot be used: ${reason}. Check TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH, or their values in temporal.toml.`,
    );
  }
}

type Tls = Exclude<
  ReturnType<typeof toClientOptions>['connectionOptions']['tls'],
  boolean | null | undefined
>;

/** The libraries report a certificate that is not PEM, or a key of another one, as a failed connection. */
function checkCertificates({ serverRootCACertificate: ca, clientCertPair: pair }: Tls): void {
  if (ca) new X509Certificate(ca);
  if (pair) createSecureContext({ cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) });
}

/** How a process reaches Temporal, for people: the address, the namespace and how it authenticates. */
export function describeConnection(settings: ConnectionSettings): string {
  const { apiKey, tls } = toClientOptions(settings.temporal_profile).connectionOptions;
  const how = [
    ...(tls ? [typeof tls === 'object' && tls.clientCertPair ? 'mTLS' : 'TLS'] : []),
    ...(apiKey === undefined ? [] : ['API key']),
  ];
  return [settings.TEMPORAL_ADDRESS, `namespace ${settings.TEMPORAL_NAMESPACE}`, ...how].join(', ');
}

/** Counts requests to Temporal. */
interface RequestCounter {
  requests: number;
}

const current = new AsyncLocalStorage<RequestCounter>();

/** Runs `work` and counts the requests to Temporal that it sends, whatever else the process sends meanwhile. */
export const withRequestCount = <Result>(counter: RequestCounter, work: () => Promise<Result>) =>
  current.run(counter, work);

/** Counts each request of a connection for the `withRequestCount` around it. Retries of a request do not count. */
const countRequests: Interceptor = (options, nextCall) => {
  const counter = current.getStore();
  if (counter) counter.requests += 1;
  return new InterceptingCall(nextCall(options));
};

// The package loads the SDK of OpenTelemetry, so processes that do not trace do not import it.

/** The interceptors of a client of Temporal. */
async function clientInterceptors(settings: TracingSettings): Promise<ClientInterceptors> {
  if (!sendsTraces(settings)) return {};
  const { TracedClient } = await import('./workflow_spans.ts');
  return { workflow: [new TracedClient()] };
}

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
    // The library would use the proxies of the environment, unlike the connections of workers.
    channelArgs: { 'grpc.enable_http_proxy': 0 },
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
export async function connectWorkers(settings: ConnectionSettings): Promise<NativeConnection> {
  // Servers and commands need no native library, which takes half a second to load.
  const { NativeConnection } = await import('@temporalio/worker');
  return NativeConnection.connect({
    ...connectionOptions(settings),
    // Messages have a few kB. To compress and inflate them took 3 % of the CPU of Temporal, and more of the threads of Core.
    grpcCompression: { codec: 'none' },
  });
}

/**
 * Creates a client on the connection of the workers of a process. The response to a start can bring them the first task of the
 * workflow. Its requests have no timeout of their own.
 */
export const clientOfWorkers = async (
  connection: NativeConnection,
  settings: ClientSettings,
): Promise<Client> =>
  new Client({
    connection,
    namespace: settings.TEMPORAL_NAMESPACE,
    dataConverter: { payloadCodecs: await loadPayloadCodecs(settings) },
    interceptors: await clientInterceptors(settings),
  });
