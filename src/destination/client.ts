/** S3 clients: their connections, credentials and trusted authorities, and a pool of idle ones. */
import { createHash } from 'node:crypto';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { NodeHttpHandler, type NodeHttpHandlerOptions } from '@smithy/node-http-handler';
import type { Settings } from '../config/settings.ts';
import { endpointLookup, endpointProblem, type S3Config } from './config.ts';
import { DestinationError } from './destination.ts';
import { toAssumeRoleError } from './errors.ts';
import { publishRequests, traceRequests } from './request_events.ts';

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

/** The session name under which AWS logs exportd's requests. */
const sessionName = 'exportd';
/** The STS region for destinations outside AWS, whose region means nothing to AWS. */
const fallbackRegion = 'us-east-1';

/**
 * The credentials of a client: the keys of the config, or a role that is assumed with them. Without keys, the SDK's
 * default chain applies (environment, profile, role of the machine).
 */
function credentialsOf(
  config: S3Config,
  settings: Pick<Settings, 'EXPORTD_S3_REQUEST_TIMEOUT'>,
): Pick<S3ClientConfig, 'credentials'> {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, role_arn } = config;
  const keys =
    accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey };
  if (role_arn !== null) return { credentials: assumeRole(config, role_arn, keys, settings) };
  return keys ? { credentials: keys } : {};
}

function assumeRole(
  { external_id, endpoint_url, region }: S3Config,
  roleArn: string,
  keys: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined,
  { EXPORTD_S3_REQUEST_TIMEOUT: timeout }: Pick<Settings, 'EXPORTD_S3_REQUEST_TIMEOUT'>,
): NonNullable<S3ClientConfig['credentials']> {
  const provider = fromTemporaryCredentials({
    params: {
      RoleArn: roleArn,
      RoleSessionName: sessionName,
      ...(external_id === null ? {} : { ExternalId: external_id }),
    },
    ...(keys ? { masterCredentials: keys } : {}),
    clientConfig: {
      region: endpoint_url === null ? region : fallbackRegion,
      // Used about once an hour. A kept connection would outlive its client.
      requestHandler: new NodeHttpHandler({
        httpAgent: new HttpAgent({ keepAlive: false }),
        httpsAgent: new HttpsAgent({ keepAlive: false }),
        connectionTimeout: timeout,
        socketTimeout: timeout,
      }),
    },
  });
  return (properties) =>
    provider(properties).catch((error: unknown) => {
      throw toAssumeRoleError(error, { usesMachine: keys === undefined });
    });
}

/** Attempts of the client before it reports an error. */
const maxAttempts = 2;
/** Maximum number of connections per destination: one for each part in flight, and a few more. */
const maxSockets = 16;

/** Creates a client for a config. The caller destroys it. @throws DestinationError when the endpoint is not allowed */
export function createS3Client(config: S3Config, settings: Settings): S3Client {
  const client = new S3Client({
    region: config.region,
    maxAttempts: maxAttempts,
    requestHandler: requestHandler(config, settings),
    ...credentialsOf(config, settings),
    ...addressing(config),
  });
  publishRequests(client);
  traceRequests(client);
  return client;
}

/**
 * How many times longer a connection may be silent after a body was written: the system still sends what it has buffered,
 * up to several megabytes, which takes long on a slow line. A server may be silent for as long while it joins the parts of
 * a large file.
 */
const uploadTimeouts = 6;
/** A larger body may be in the system's buffers while the connection seems to be silent. */
const maxQuickBodyBytes = 65_536;

/** Gives uploads and their completion more time, and lets the SDK repeat no request that timed out. */
class S3RequestHandler extends NodeHttpHandler {
  readonly #uploading: NodeHttpHandler;

  constructor(options: NodeHttpHandlerOptions & { readonly socketTimeout: number }) {
    super(options);
    const socketTimeout = options.socketTimeout * uploadTimeouts;
    this.#uploading = new NodeHttpHandler({ ...options, socketTimeout });
  }

  override async handle(
    ...[request, options]: Parameters<NodeHttpHandler['handle']>
  ): ReturnType<NodeHttpHandler['handle']> {
    try {
      const completes = request.method === 'POST' && request.query.uploadId !== undefined;
      const uploads = Number(request.headers['content-length'] ?? 0) > maxQuickBodyBytes;
      return await (completes || uploads
        ? this.#uploading.handle(request, options)
        : super.handle(request, options));
    } catch (error) {
      // The SDK recognizes timeouts by this name. A repetition would only double the time before the caller learns of it.
      if (Error.isError(error) && error.name === 'TimeoutError')
        throw Object.assign(new Error('The server did not respond.'), { name: 'NoResponse' });
      throw error;
    }
  }
}

function requestHandler(config: S3Config, settings: Settings): NodeHttpHandler {
  const {
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate,
    EXPORTD_S3_REQUEST_TIMEOUT: timeout,
    EXPORTD_S3_CA_BUNDLE: bundle,
  } = settings;
  const problem = config.endpoint_url === null ? null : endpointProblem(config.endpoint_url, allowPrivate);
  if (problem !== null)
    throw new DestinationError('EndpointNotAllowed', `The endpoint_url is not allowed: ${problem}.`, {
      transient: false,
    });
  const agent = {
    keepAlive: true,
    maxSockets: maxSockets,
    ...(config.endpoint_url !== null && { lookup: endpointLookup(allowPrivate) }),
  };
  return new S3RequestHandler({
    httpAgent: new HttpAgent(agent),
    httpsAgent: new HttpsAgent({
      ...agent,
      ...(bundle !== undefined && { secureContext: secureContextOf(bundle) }),
    }),
    connectionTimeout: timeout,
    // Limits the time without data, not the duration of a request: a part may take long on a slow connection.
    socketTimeout: timeout,
  });
}

const addressing = ({ endpoint_url, use_virtual_style_addressing }: S3Config): S3ClientConfig =>
  endpoint_url === null
    ? {}
    : {
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
export function acquireS3Client(config: S3Config, settings: Settings): PooledClient {
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
