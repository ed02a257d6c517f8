/** The credentials of a destination: its keys, a role that is assumed with them, or those of the machine. */
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { fromNodeProviderChain, fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import type { Settings } from '../config/settings.ts';
import type { Proxies } from '../network/proxies.ts';
import type { S3Config } from './config.ts';
import { DestinationError } from './destination.ts';
import { toAssumeRoleError, toMachineError, withServerText } from './errors.ts';
import { S3RequestHandler } from './responses.ts';
import { accountOf, forgetRole, requireGuardedRole } from './roles.ts';
import { createHandler } from './request_handler.ts';

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
export function credentialsOf(config: S3Config, settings: RoleSettings): Pick<S3ClientConfig, 'credentials'> {
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
