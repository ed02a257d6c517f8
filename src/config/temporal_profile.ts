import { existsSync } from 'node:fs';
import { loadClientConfigProfile, type ClientConfigProfile } from '@temporalio/envconfig';
import { SettingsError } from './settings_error.ts';

/**
 * Reads how to reach Temporal: the profile of `temporal.toml`, overridden by the environment.
 * @throws SettingsError for what Temporal's library would ignore or report without a name
 */
export function readTemporalProfile(environment: Readonly<Record<string, string>>): ClientConfigProfile {
  const { TEMPORAL_CONFIG_FILE: file } = environment;
  if (file !== undefined && !existsSync(file))
    throw new SettingsError(`TEMPORAL_CONFIG_FILE is a file that does not exist: ${file}.`);
  if (isTrue(environment.TEMPORAL_TLS_DISABLE_HOST_VERIFICATION))
    throw new SettingsError(
      "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION is not supported. Set TEMPORAL_TLS_SERVER_CA_CERT_PATH, and TEMPORAL_TLS_SERVER_NAME if the server's certificate has another name.",
    );
  const profile = loadProfile({ ...environment });
  const { tls, grpcMeta } = profile;
  if ((tls?.clientCert === undefined) !== (tls?.clientKey === undefined))
    throw new SettingsError(
      'TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH need each other: set both or neither.',
    );
  if (!grpcMeta) return profile;
  // The library replaces the first underscores of a header's name only.
  const headers = Object.entries(grpcMeta).map(
    ([name, value]) => [name.replaceAll('_', '-'), value] as const,
  );
  return { ...profile, grpcMeta: Object.fromEntries(headers) };
}

function loadProfile(overrideEnvVars: Record<string, string>): ClientConfigProfile {
  try {
    return loadClientConfigProfile({ overrideEnvVars });
  } catch (error) {
    // The library fails so on a file without any profile.
    if (Error.isError(error) && error.name === 'TypeError' && overrideEnvVars.TEMPORAL_PROFILE === undefined)
      return loadClientConfigProfile({ overrideEnvVars, disableFile: true });
    const reason = Error.isError(error) ? error.message : String(error);
    throw new SettingsError(
      `Temporal's settings cannot be read: ${reason}. Check TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_….`,
    );
  }
}

const isTrue = (value: string | undefined): boolean => value === 'true' || value === '1';
