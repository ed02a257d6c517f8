/** Requests to S3: clients with their connections, credentials and trusted authorities, and what each request reports. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Agent as HttpAgent, type AgentOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import {
  type $Command,
  HeadObjectCommand,
  type PutObjectCommandInput,
  type PutObjectCommandOutput,
  S3Client,
  type S3ClientConfig,
  type S3ClientResolvedConfig,
  type S3ServiceException,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import { fromNodeProviderChain, fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import type { Settings } from '../config/settings.ts';
import { hasProxy, type Proxies, throughProxies } from '../network/proxies.ts';
import { type ForeignBytes, foreignBytesOf } from '../foreign_bytes/foreign_bytes.ts';
import { inSpan, SpanKind } from '../tracing/spans.ts';
import { requireAnswers } from './answers.ts';
import { type CircuitReporter, DestinationError } from './destination.ts';
import { endpointLookup, endpointProblem, requirePublicEndpoint, type S3Config } from './config.ts';
import {
  conditionFailureCodes,
  isThrottled,
  toAssumeRoleError,
  toDestinationError,
  toMachineError,
  withOwner,
  withServerText,
} from './errors.ts';
import { safeText } from '../config/bounds.ts';
import { probeKey } from './keys.ts';
import { followRedirects } from './redirects.ts';
import { ProxiedRequestHandler, S3RequestHandler } from './responses.ts';
import { accountOf, forgetRole, requireGuardedRole } from './roles.ts';
import { unknownTraits, type StoreTraits } from './store_traits.ts';

/** How a request ended; one word for each thing that an operator would do about it. */
const s3Outcomes = [
  'ok',
  'not_found',
  'conflict',
  'denied',
  'rejected',
  'throttled',
  'server_error',
  'no_response',
  'aborted',
] as const;
type S3Outcome = (typeof s3Outcomes)[number];

/** A request to an S3 server that has ended. A request that the SDK repeats is one for each attempt. */
export interface EndedS3Request {
  /** As in the S3 API, for example `UploadPart`. */
  readonly operation: string;
  readonly outcome: S3Outcome;
  readonly seconds: number;
}

// A channel, because clients are created deep inside destinations, and metrics are of the whole process.
const endedName = 'exportd.s3.request_ended';
const ended = channel(endedName);

/** Calls `observe` for every request of this process. @returns a function that stops it */
export function observeS3Requests(observe: (request: EndedS3Request) => void): () => void {
  const listener = (message: unknown): void => observe(message as EndedS3Request);
  subscribe(endedName, listener);
  return () => {
    unsubscribe(endedName, listener);
  };
}

/** Publishes the end of each request of a client. */
export function publishRequests(client: S3Client): void {
  client.middlewareStack.add(
    (next, context) => async (call) => {
      if (!ended.hasSubscribers) return next(call);
      const operation = (context.commandName ?? 'unknown').replace(/Command$/, '');
      const startedAt = performance.now();
      const publish = (outcome: S3Outcome): void => {
        const seconds = (performance.now() - startedAt) / 1_000;
        ended.publish({ operation, outcome, seconds } satisfies EndedS3Request);
      };
      try {
        const output = await next(call);
        publish('ok');
        return output;
      } catch (error) {
        publish(outcomeOf(error));
        throw error;
      }
    },
    // After the SDK's retries, so that each attempt passes.
    { step: 'finalizeRequest', priority: 'low', name: 'publishRequests' },
  );
}

/** The outcome of a request that was rejected with this error. */
export function outcomeOf(error: unknown): S3Outcome {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (name === 'AbortError') return 'aborted';
  if (error instanceof DestinationError) return outcomeOfAnswer(error);
  if (status === undefined) return 'no_response';
  // A condition of a read that does not hold.
  if (status < 400) return 'ok';
  if (status === 429 || (name !== undefined && isThrottled(name))) return 'throttled';
  if (status >= 500) return 'server_error';
  switch (status) {
    case 401:
    case 403:
      return 'denied';
    case 404:
      return 'not_found';
    case 409:
    case 412:
      return 'conflict';
    default:
      return 'rejected';
  }
}

/** The outcome of an answer that the client does not believe, or of an address that it does not connect to. */
function outcomeOfAnswer({ type }: DestinationError): S3Outcome {
  if (type === 'EndpointNotAllowed') return 'no_response';
  return type.endsWith('Redirect') ? 'rejected' : 'server_error';
}

/** The fields of requests that spans show. */
interface TracedInput {
  readonly Bucket?: string;
  readonly Key?: string;
  readonly PartNumber?: number;
}

/**
 * Gives every request of a client a span, if it is sent within a trace: one for all attempts of the SDK. It shows bucket,
 * key and part, and neither bodies nor headers.
 */
function traceRequests(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = 'Command' }) =>
      (args) => {
        const operation = commandName.replace(/Command$/, '');
        const { Bucket, Key, PartNumber } = args.input as TracedInput;
        const attributes = {
          'rpc.system': 'aws-api',
          'rpc.service': 'S3',
          'rpc.method': operation,
          ...(Bucket !== undefined && { 'aws.s3.bucket': Bucket }),
          ...(Key !== undefined && { 'aws.s3.key': Key }),
          ...(PartNumber !== undefined && { 'aws.s3.part_number': PartNumber }),
        };
        return inSpan(`S3 ${operation}`, { kind: SpanKind.CLIENT, attributes }, async (span) => {
          const done = await next(args);
          const { httpStatusCode, attempts } = done.output.$metadata;
          if (httpStatusCode !== undefined) span?.setAttribute('http.response.status_code', httpStatusCode);
          if (attempts !== undefined) span?.setAttribute('aws.attempts', attempts);
          return done;
        });
      },
    { step: 'initialize', name: 'exportdSpans' },
  );
}

/** Contexts by the text of a CA bundle: parsing all certificates takes milliseconds, and clients are created often. */
const contexts = new Map<string, SecureContext>();

/** A TLS context that trusts the CAs of a bundle besides those that Node trusts, `NODE_EXTRA_CA_CERTS` included. */
function secureContextOf(caBundle: string): SecureContext {
  const known = contexts.get(caBundle);
  if (known) return known;
  const context = createSecureContext({ ca: [...getCACertificates('default'), caBundle] });
  contexts.set(caBundle, context);
  return context;
}

/** What the requests of a destination show of its store. */
type ObservedStore = Writable<Pick<StoreTraits, 'server' | 'versioned' | 'demands_checksums'>>;
type Writable<Value> = { -readonly [Field in keyof Value]: Value[Field] };

/** The store that a request is sent to: clients are shared by destinations. */
const observedStore = new AsyncLocalStorage<ObservedStore>();

/** What stores call the lack of a checksum. For S3 itself it is one of many invalid requests. */
const checksumDemands: ReadonlySet<string> = new Set([
  'InvalidRequest',
  'MissingContentMD5',
  'MissingContentMd5',
]);

/** The request header of a checksum that every store knows; undefined for what has no bytes, or has its checksum. */
function checksumOf(input: object): { readonly ContentMD5: string } | undefined {
  const { Body, ContentMD5, ChecksumCRC32 } = input as PutObjectCommandInput;
  if (!Buffer.isBuffer(Body) || ContentMD5 !== undefined || ChecksumCRC32 !== undefined) return undefined;
  return { ContentMD5: createHash('md5').update(Body).digest('base64') };
}

/** Observes the store of each request, and sends a checksum with bytes where the bucket demands one. */
function observeStore(client: S3Client): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const store = observedStore.getStore();
      const withChecksum = (): typeof args => ({
        ...args,
        input: { ...args.input, ...checksumOf(args.input) },
      });
      try {
        const sent = await next(store?.demands_checksums === true ? withChecksum() : args);
        const { VersionId } = sent.output as PutObjectCommandOutput;
        // A bucket whose versioning is suspended says `null`, and keeps the versions that it has.
        if (store && VersionId !== undefined && VersionId !== 'null') store.versioned = true;
        return sent;
      } catch (error) {
        const { name, $metadata } = error as Partial<S3ServiceException> & Error;
        const isDemand = $metadata?.httpStatusCode === 400 && checksumDemands.has(name);
        if (!store || store.demands_checksums === true || !isDemand || !checksumOf(args.input)) throw error;
        const sent = await next(withChecksum());
        store.demands_checksums = true;
        return sent;
      }
    },
    { step: 'initialize', priority: 'low', name: 'observeStore' },
  );
  client.middlewareStack.add(
    (next) => async (args) => {
      // Only a success is of the store: a proxy in front of it may respond with errors of its own.
      const received = await next(args);
      const { headers } = received.response as { readonly headers?: { readonly server?: string } };
      const store = observedStore.getStore();
      if (store && headers?.server !== undefined)
        store.server = safeText(headers.server).slice(0, maxServerLength);
      return received;
    },
    { step: 'deserialize', priority: 'high', name: 'observeServer' },
  );
}

/** Characters of the name of a server that are kept. */
const maxServerLength = 200;

/** Settings of requests to AWS STS. */
type RoleSettings = Pick<Settings, 'EXPORTD_S3_REQUEST_TIMEOUT' | 'EXPORTD_ROLE_ACCOUNTS'> & Proxies;

/** The session name under which AWS logs exportd's requests. */
const sessionName = 'exportd';
/** The STS region for destinations outside AWS, whose region means nothing to AWS. */
const fallbackRegion = 'us-east-1';

/**
 * The credentials of a client: the keys of the config, or a role that is assumed with them. Without keys, the SDK's
 * default chain applies (environment, profile, role of the machine).
 */
function credentialsOf(config: S3Config, settings: RoleSettings): Pick<S3ClientConfig, 'credentials'> {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, role_arn } = config;
  const keys =
    accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey };
  if (role_arn !== null) return { credentials: assumeRole(config, role_arn, keys, settings) };
  return { credentials: keys ?? machineCredentials(settings) };
}

/** The SDK's default chain. Each client reads the files of profiles again: they may have been rotated. */
function machineCredentials(settings: RoleSettings): ReturnType<typeof fromNodeProviderChain> {
  const chain = fromNodeProviderChain({
    ignoreCache: true,
    clientConfig: { requestHandler: stsHandler(settings) },
  });
  return (properties) =>
    chain(properties).catch((error: unknown) => {
      throw toMachineError(error);
    });
}

/** Sends requests to AWS STS, about once an hour. A kept connection would outlive its client. */
const stsHandler = (settings: RoleSettings): S3RequestHandler =>
  createHandler(settings, { agent: { keepAlive: false }, admit: () => Promise.resolve() });

function assumeRole(
  config: S3Config,
  roleArn: string,
  keys: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined,
  settings: RoleSettings,
): NonNullable<S3ClientConfig['credentials']> {
  const { external_id, endpoint_url } = config;
  const usesMachine = keys === undefined;
  const identity = keys ?? machineCredentials(settings);
  const region = endpoint_url === null ? config.region : fallbackRegion;
  const requestHandler = stsHandler(settings);
  const assumeWith = (externalId: string | null) =>
    fromTemporaryCredentials({
      params: {
        RoleArn: roleArn,
        RoleSessionName: sessionName,
        ...(externalId === null ? {} : { ExternalId: externalId }),
      },
      masterCredentials: identity,
      clientConfig: { region, requestHandler },
    });
  const provider = assumeWith(external_id);
  return async (properties) => {
    try {
      if (usesMachine)
        await requireGuardedRole(roleArn, {
          settings,
          assumeWith: (externalId) => assumeWith(externalId)(properties),
          ownAccount: () => accountOf({ identity, region, requestHandler }),
        });
      return await provider(properties);
    } catch (error) {
      throw withServerText(toAssumeRoleError(error, { usesMachine }), error, config, {
        ofMachine: usesMachine,
      });
    }
  };
}

/** Why exportd does not assume the role of a config now; null if it does, or if AWS does not say. */
export async function roleRefusal(config: S3Config, settings: Settings): Promise<string | null> {
  if (config.role_arn !== null) forgetRole(config.role_arn, settings);
  const { credentials } = credentialsOf(config, settings);
  try {
    if (typeof credentials === 'function') await credentials();
  } catch (error) {
    if (error instanceof DestinationError && error.type === 'RoleNotAllowed') return error.message;
  }
  return null;
}

/** Attempts of the client before it reports an error. */
const maxAttempts = 2;
/** Maximum number of connections per destination: one for each part in flight, and a few more. */
const maxSockets = 16;

/** What the SDK would take from the environment, or from a profile. process_environment.ts refuses the variables by name. */
const ownChoices: S3ClientConfig = {
  retryMode: 'standard',
  defaultsMode: 'legacy',
  ignoreConfiguredEndpointUrls: true,
  requestChecksumCalculation: 'WHEN_SUPPORTED',
  responseChecksumValidation: 'WHEN_SUPPORTED',
  authSchemePreference: [],
  useArnRegion: false,
  disableS3ExpressSessionAuth: false,
};

/** Creates a client for a config. The caller destroys it. @throws DestinationError when the endpoint is not allowed */
export function createS3Client(config: S3Config, settings: Settings): S3Client {
  const client = new S3Client({
    region: config.region,
    maxAttempts: maxAttempts,
    // What a profile of ~/.aws/config would change otherwise, for all destinations.
    ...ownChoices,
    requestHandler: requestHandler(config, settings),
    ...credentialsOf(config, settings),
    ...addressing(config),
  });
  publishRequests(client);
  traceRequests(client);
  observeStore(client);
  requireAnswers(client);
  followRedirects(client, config, settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS);
  return client;
}

function requestHandler(config: S3Config, settings: Settings): S3RequestHandler {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate, EXPORTD_S3_CA_BUNDLE: bundle } = settings;
  const problem = config.endpoint_url === null ? null : endpointProblem(config.endpoint_url, allowPrivate);
  if (problem !== null)
    throw new DestinationError('EndpointNotAllowed', `The endpoint_url is not allowed: ${problem}.`, {
      transient: false,
    });
  const isAws = config.endpoint_url === null;
  return createHandler(settings, {
    agent: {
      keepAlive: true,
      maxSockets: maxSockets,
      ...(!isAws && { lookup: endpointLookup(allowPrivate) }),
    },
    ...(bundle !== undefined && { secureContext: secureContextOf(bundle) }),
    admit: (host) => (isAws ? Promise.resolve() : requirePublicEndpoint(host, allowPrivate)),
  });
}

interface Connections {
  readonly agent: AgentOptions;
  readonly secureContext?: SecureContext;
  /** Rejects for a host that no request may be sent to through a proxy. */
  readonly admit: (host: string) => Promise<void>;
}

function createHandler(
  settings: RoleSettings,
  { agent, secureContext, admit }: Connections,
): S3RequestHandler {
  const { EXPORTD_S3_REQUEST_TIMEOUT: timeout } = settings;
  const optionsOf = (options: AgentOptions) => ({
    httpAgent: new HttpAgent(options),
    httpsAgent: new HttpsAgent({ ...options, ...(secureContext && { secureContext }) }),
    connectionTimeout: timeout,
    // Limits the time without data, not the duration of a request: a part may take long on a slow connection.
    socketTimeout: timeout,
  });
  if (!hasProxy(settings)) return new S3RequestHandler(optionsOf(agent));
  const proxied = optionsOf(throughProxies(settings, agent));
  return new ProxiedRequestHandler(optionsOf(agent), proxied, { proxies: settings, admit });
}

const addressing = ({ endpoint_url, use_virtual_style_addressing }: S3Config): S3ClientConfig =>
  endpoint_url === null
    ? {}
    : {
        // What the environment chooses of AWS's own hosts.
        useFipsEndpoint: false,
        useDualstackEndpoint: false,
        endpoint: endpoint_url,
        forcePathStyle: !use_virtual_style_addressing,
        // Many other servers reject the checksum trailers that the SDK adds by default.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      };

/** A client for exclusive use until it is released. */
interface PooledClient {
  readonly client: S3Client;
  /**
   * Has no effect the second time. With `reusable: false`, after an error that a new client may not have, the client
   * is destroyed.
   */
  release(how: { readonly reusable: boolean }): void;
}

/** A client that can be acquired. */
interface IdleClient {
  readonly client: S3Client;
  readonly access: string;
  readonly end: NodeJS.Timeout;
}

/**
 * Idle time in milliseconds before a client is destroyed. Activities of runs that are due together follow each other
 * faster, and servers close idle connections.
 */
const idleTimeoutMs = 2_000;
/** Maximum number of idle clients. */
const maxIdleClients = 32;

/**
 * Idle clients by settings, because clients depend on them. A destination test has separate settings, and therefore a
 * new client.
 */
const idleClients = new WeakMap<Settings, Set<IdleClient>>();

/**
 * Acquires a client for a config: an idle one with open connections, or a new one, which costs as much CPU time as
 * several requests. Clients are never shared, so a slow bucket does not delay other exports.
 * @throws DestinationError when the endpoint is not allowed
 */
function acquireS3Client(config: S3Config, settings: Settings): PooledClient {
  const idle = idleClients.get(settings) ?? new Set();
  idleClients.set(settings, idle);
  const access = accessOf(config);
  const found = [...idle].findLast((waiting) => waiting.access === access);
  if (found) {
    clearTimeout(found.end);
    idle.delete(found);
  }
  const client = found?.client ?? createS3Client(config, settings);
  let inUse = true;
  return {
    client,
    release: ({ reusable }) => {
      if (!inUse) return;
      inUse = false;
      if (!reusable || idle.size >= maxIdleClients) {
        client.destroy();
        return;
      }
      const end = setTimeout(() => {
        idle.delete(waiting);
        client.destroy();
      }, idleTimeoutMs).unref();
      const waiting: IdleClient = { client, access, end };
      idle.add(waiting);
    },
  };
}

/** A digest of the config fields that a client depends on, including secrets. */
function accessOf(config: S3Config): string {
  const { region, endpoint_url, use_virtual_style_addressing, role_arn, external_id } = config;
  const { aws_access_key_id = null, aws_secret_access_key = null } = config;
  const fields = [
    region,
    endpoint_url,
    use_virtual_style_addressing,
    role_arn,
    external_id,
    aws_access_key_id,
    aws_secret_access_key,
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64');
}

/** Dependencies of a destination. */
export interface DestinationContext {
  readonly settings: Settings;
  /**
   * Called when a request failed with a transient error and will be retried; also with a permanent error that the
   * destination can work around.
   */
  readonly onError: (error: DestinationError) => void;
  /** How the store behaves; unknown by default. */
  readonly traits?: StoreTraits;
  /** Stores what a request revealed of the store. */
  readonly onTraits?: (found: Partial<StoreTraits>) => Promise<void>;
  /** The project that owns the bucket; null, the default, for a person at the command line or before there is an export. */
  readonly team_id?: number | null;
  /** The circuit of the destination, which its requests report to; none by default. */
  readonly circuit?: CircuitReporter;
}

/** Requests to the bucket of a destination, with retries. */
export interface S3Requests {
  readonly bucket: string;
  /** How long a connection may be silent, in milliseconds. */
  readonly silenceMs: number;
  /**
   * Sends a request. Transient errors are retried for EXPORTD_S3_RETRY_BUDGET, which rides out a short interruption.
   * After that the destination is unavailable: further requests of the attempt fail at once. Because a response can be
   * lost, the request may arrive twice.
   * @throws DestinationError, or the signal's reason once it is aborted
   */
  send<Output>(
    operation: string,
    signal: AbortSignal,
    call: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<Output>,
    options?: SendOptions,
  ): Promise<Output>;
  /** Reads what the objects of the bucket are. */
  readonly foreign: ForeignBytes;
  /** Reports an error that is worked around to the owner of the export. */
  readonly report: (failure: DestinationError) => void;
  /** Whether the bucket is known to keep versions. */
  isVersioned(): boolean;
  /** Stores what a request revealed of the store. */
  readonly learn: (found: Partial<StoreTraits>) => Promise<void>;
  readonly close: () => void;
}

/** Sends one command, created anew for each attempt. See `S3Requests.send`. */
export const sendCommand = <Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
  requests: Pick<S3Requests, 'send'>,
  Command: new (
    input: Input,
  ) => $Command<Input, Output, S3ClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>,
  input: Input,
  signal: AbortSignal,
  options?: SendOptions,
): Promise<Output> =>
  requests.send(
    Command.name.replace(/Command$/, ''),
    signal,
    (client, call) => client.send(new Command(input), call),
    options,
  );

/** How long a request is retried. */
interface SendOptions {
  /** Whether a failure wastes what was sent before: retried for longer. */
  readonly wastesParts?: boolean;
}

/** How long a request is retried whose failure wastes parts that were sent, in milliseconds. */
const longRetryBudgetMs = 5 * 60_000;

/** Errors that are not retried: the caller checks the state of the object or upload. */
const notRetried = new Set(['NoSuchUpload', 'InvalidPart', ...conditionFailureCodes]);

/** Errors about an object, which do not indicate a problem of the connection, credentials or server. */
const isAboutObject = ({ type }: DestinationError): boolean =>
  notRetried.has(type) || type === 'NoSuchKey' || type === 'NotFound';

/** Creates the requests to the bucket of a config. */
export function createS3Requests(
  config: S3Config,
  { settings, onError, traits = unknownTraits, onTraits, circuit, team_id = null }: DestinationContext,
): S3Requests {
  const pooled = acquireS3Client(config, settings);
  let known: Readonly<ObservedStore> = traits;
  const store: ObservedStore = {
    server: traits.server,
    versioned: traits.versioned,
    demands_checksums: traits.demands_checksums,
  };
  /** Stores what the requests so far have shown, before anything relies on what was known. */
  const learnObserved = async (): Promise<void> => {
    const { server, versioned, demands_checksums } = store;
    if (
      server === known.server &&
      versioned === known.versioned &&
      demands_checksums === known.demands_checksums
    )
      return;
    known = { server, versioned, demands_checksums };
    await onTraits?.(known);
  };
  let reusable = true;
  const ofMachine = config.aws_access_key_id === undefined && config.role_arn === null;
  const {
    EXPORTD_S3_RETRY_BUDGET: retryBudget,
    EXPORTD_ACTIVITY_RETRY_INITIAL: initial,
    EXPORTD_ACTIVITY_RETRY_MAX: maximum,
  } = settings;
  const shouldRetry = (failure: DestinationError): boolean =>
    failure.transient && !notRetried.has(failure.type);
  /** Why the destination is unavailable, once a request was given up. */
  let unavailable: DestinationError | undefined;
  return {
    bucket: config.bucket_name,
    silenceMs: settings.EXPORTD_S3_REQUEST_TIMEOUT,
    send: async (operation, signal, call, { wastesParts = false } = {}) => {
      const started = performance.now();
      const budget = wastesParts ? Math.max(retryBudget, longRetryBudgetMs) : retryBudget;
      for (let pause = initial; ; pause = Math.min(pause * 2, maximum)) {
        signal.throwIfAborted();
        if (unavailable) throw unavailable;
        try {
          const output = await observedStore.run(store, () => call(pooled.client, { abortSignal: signal }));
          circuit?.responded();
          await learnObserved();
          return output;
        } catch (error) {
          const described = withOwner(toDestinationError(error, operation, config.bucket_name), config);
          const failure = withServerText(described, error, config, { ofMachine });
          if (signal.aborted || !isAboutObject(failure)) reusable = false;
          signal.throwIfAborted();
          const retriedFor = performance.now() + pause - started;
          // Another attempt may have found out already that waiting is useless.
          const givesUp =
            retriedFor > budget || (!wastesParts && failure.unavailable && circuit?.isOpen() === true);
          if (
            shouldRetry(failure) &&
            failure.unavailable &&
            circuit &&
            (givesUp || retriedFor > retryBudget)
          ) {
            const reported = await circuit.unavailable(failure);
            if (givesUp) {
              unavailable = reported;
              throw reported;
            }
          }
          if (!shouldRetry(failure) || givesUp) throw failure;
          onError(failure);
          await wait(pause, undefined, { signal }).catch(() => {
            throw signal.reason;
          });
        }
      }
    },
    foreign: foreignBytesOf(settings, team_id),
    report: onError,
    isVersioned: () => store.versioned === true,
    learn: async (found) => onTraits?.({ server: store.server, ...found }),
    close: () => pooled.release({ reusable }),
  };
}

/**
 * A digest of what the requests of a config are sent to: server, region and bucket. Exports with equal digests are
 * unavailable together. Credentials are no part of it, so that the owner of one export can make no other unavailable. The style of addresses is part of it, because it
 * changes the host name, and so is the use of a role, because AWS STS may be unavailable.
 */
export function circuitOf(config: Readonly<Record<string, unknown>>): string {
  const { endpoint_url, use_virtual_style_addressing, region, bucket_name, role_arn } = config;
  const fields = [
    endpoint_url,
    use_virtual_style_addressing,
    region,
    bucket_name,
    typeof role_arn === 'string',
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64url');
}

/**
 * Asks for an object that does not exist. Any response will do, also an error for which the owner of the bucket is responsible.
 * @throws DestinationError with `unavailable` when the server does not respond
 */
export async function probeS3(config: S3Config, settings: Settings): Promise<void> {
  const pooled = acquireS3Client(config, settings);
  const signal = AbortSignal.timeout(settings.EXPORTD_S3_PROBE_TIMEOUT);
  let reusable = true;
  try {
    const object = { Bucket: config.bucket_name, Key: probeKey(config.prefix) };
    await pooled.client.send(new HeadObjectCommand(object), { abortSignal: signal });
  } catch (error) {
    const failure = toDestinationError(error, 'HeadObject', config.bucket_name);
    const timedOut = signal.aborted && !(error instanceof DestinationError);
    reusable = !timedOut && !failure.unavailable;
    if (timedOut)
      throw new DestinationError(
        'S3Unreachable',
        `The S3 server did not respond in ${settings.EXPORTD_S3_PROBE_TIMEOUT} ms; check endpoint_url of the destination and whether the server is running.`,
        { transient: true, unavailable: true },
      );
    if (failure.unavailable) throw failure;
  } finally {
    pooled.release({ reusable });
  }
}
