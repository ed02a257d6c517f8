import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import type { Settings } from '../../config/settings.ts';
import type { S3Config } from './config.ts';
import { toAssumeRoleError } from './errors.ts';

/** How the role's owner finds exportd's requests in the logs of AWS. */
const sessionName = 'exportd';
/** Where roles of a destination outside of AWS are assumed: its region means nothing there. */
const fallbackRegion = 'us-east-1';

/**
 * What a client signs its requests with: the keys of the config, or a role that is assumed with them. Without keys the
 * SDK's own chain (environment, profile, role of the machine) takes their place.
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
      // Asked about once an hour: a connection that is kept would only outlive its client.
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
      throw toAssumeRoleError(error);
    });
}
