import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import type { Settings } from '../../config/settings.ts';
import type { S3Config } from './config.ts';
import { toAssumeRoleError } from './errors.ts';

/** The session name under which AWS logs exportd's requests. */
const sessionName = 'exportd';
/** The STS region for destinations outside AWS, whose region means nothing to AWS. */
const fallbackRegion = 'us-east-1';

/**
 * The credentials of a client: the keys of the config, or a role that is assumed with them. Without keys, the SDK's
 * default chain applies (environment, profile, role of the machine).
 */
export function credentialsOf(
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
