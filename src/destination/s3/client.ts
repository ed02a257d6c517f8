import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { NodeHttpHandler, type NodeHttpHandlerOptions } from '@smithy/node-http-handler';
import type { Settings } from '../../config/settings.ts';
import { DestinationError } from '../destination.ts';
import type { S3Config } from './config.ts';
import { credentialsOf } from './credentials.ts';
import { endpointProblem, endpointLookup } from './endpoint.ts';
import { publishRequests } from './request_events.ts';
import { traceRequests } from './trace_requests.ts';
import { secureContextOf } from './trusted_authorities.ts';

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
