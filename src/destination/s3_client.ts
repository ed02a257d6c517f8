/** S3 clients: their connections, trusted authorities and addresses, and what observes their requests. */
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { Settings } from '../config/settings.ts';
import { requireAnswers } from './answers.ts';
import type { S3Config } from './config.ts';
import { credentialsOf } from './credentials.ts';
import { observeStore } from './observed_store.ts';
import { followRedirects } from './redirects.ts';
import { traceRequests } from './request_spans.ts';
import { publishRequests } from './s3_outcomes.ts';
import { requestHandler } from './request_handler.ts';

/** Attempts of the client before it reports an error. */
const maxAttempts = 2;

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
