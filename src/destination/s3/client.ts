import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import type { Settings } from '../../config/settings.ts';
import { DestinationError } from '../destination.ts';
import type { S3Config } from './config.ts';
import { credentialsOf } from './credentials.ts';
import { endpointProblem, endpointLookup } from './endpoint.ts';

/** The client tries a request this often before its caller learns of the fault. */
const attempts = 2;
/** Connections kept per destination: the parts in flight and a few more. */
const socketsMaximum = 16;

/**
 * A client for one config of a destination. The caller destroys it.
 * @throws DestinationError when the endpoint is one that this installation does not allow.
 */
export function createS3Client(config: S3Config, settings: Settings): S3Client {
  return new S3Client({
    region: config.region,
    maxAttempts: attempts,
    requestHandler: requestHandler(config, settings),
    ...credentialsOf(config, settings),
    ...addressing(config),
  });
}

function requestHandler(config: S3Config, settings: Settings): NodeHttpHandler {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowPrivate, EXPORTD_S3_REQUEST_TIMEOUT: timeout } = settings;
  const fault = config.endpoint_url === null ? null : endpointProblem(config.endpoint_url, allowPrivate);
  if (fault !== null)
    throw new DestinationError('EndpointNotAllowed', `The endpoint_url is refused: ${fault}.`, {
      transient: false,
    });
  const agent = {
    keepAlive: true,
    maxSockets: socketsMaximum,
    ...(config.endpoint_url !== null && { lookup: endpointLookup(allowPrivate) }),
  };
  return new NodeHttpHandler({
    httpAgent: new HttpAgent(agent),
    httpsAgent: new HttpsAgent(agent),
    connectionTimeout: timeout,
    // The longest silence, not the longest request: a part on a slow line may take its time as long as bytes flow.
    socketTimeout: timeout,
  });
}

const addressing = ({ endpoint_url, use_virtual_style_addressing }: S3Config): S3ClientConfig =>
  endpoint_url === null
    ? {}
    : {
        endpoint: endpoint_url,
        forcePathStyle: !use_virtual_style_addressing,
        // Servers other than AWS often refuse the checksum trailers that the SDK adds by itself.
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
      };
