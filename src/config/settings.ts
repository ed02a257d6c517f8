import { existsSync } from 'node:fs';
import { type ClientConfigProfile, loadClientConfigProfile } from '@temporalio/envconfig';
import * as z from 'zod';
import { exports, maintenance, schedules, source, workflows } from './export_settings.ts';
import { queries } from './query_settings.ts';
import { SettingsError } from './settings_error.ts';
import { readProcessEnvironment } from './process_environment.ts';
import { httpApi, process, proxies, security, servers, traces } from './server_settings.ts';
import { temporal } from './temporal_settings.ts';
import { webhooks } from './webhook_settings.ts';

export { SettingsError };

/**
 * Reads how to reach Temporal: the profile of `temporal.toml`, overridden by the environment.
 * @throws SettingsError for what Temporal's library would ignore or report without a name
 */
function readTemporalProfile(environment: Readonly<Record<string, string>>): ClientConfigProfile {
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
    // The library throws this TypeError for a file without any profile.
    if (
      error instanceof Error &&
      error.name === 'TypeError' &&
      overrideEnvVars.TEMPORAL_PROFILE === undefined
    )
      return loadClientConfigProfile({ overrideEnvVars, disableFile: true });
    const reason = error instanceof Error ? error.message : String(error);
    throw new SettingsError(
      `Temporal's settings cannot be read: ${reason}. Check TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and TEMPORAL_TLS_….`,
    );
  }
}

const isTrue = (value: string | undefined): boolean => value === 'true' || value === '1';

/** Every setting in the order of the README, by the heading that it has there. */
export const settingGroups: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  Servers: servers,
  Temporal: temporal,
  Process: process,
  Traces: traces,
  Proxies: proxies,
  Security: security,
  'HTTP API': httpApi,
  Source: source,
  'Schedules, retries and backfills': schedules,
  Workflows: workflows,
  Exports: exports,
  Maintenance: maintenance,
  Webhooks: webhooks,
  Queries: queries,
};

export const settingsSchema = z.object({
  ...servers,
  ...temporal,
  ...process,
  ...traces,
  ...proxies,
  ...security,
  ...httpApi,
  ...source,
  ...schedules,
  ...workflows,
  ...exports,
  ...maintenance,
  ...webhooks,
  ...queries,
});

/**
 * The settings of a process, validated. Durations (written `30s`) are numbers of milliseconds here, sizes (written
 * `64MiB`) are numbers of bytes.
 */
export type Settings = Readonly<z.infer<typeof settingsSchema>> & {
  /** `DATABASE_URL` unless it is set. */
  readonly SOURCE_DATABASE_URL: string;
  /** How to reach Temporal: all `TEMPORAL_` settings, also those of `temporal.toml`. */
  readonly temporal_profile: ClientConfigProfile;
};

/** Variables of the CLI, the local stack and the tests, which servers and workers only inherit. */
const otherVariables = new Set([
  'EXPORTD_DATA_DIR',
  'EXPORTD_CACHE_DIR',
  'EXPORTD_STARTED_AT',
  'EXPORTD_API_KEY',
  'EXPORTD_TEST_CAMPAIGN_MINUTES',
  'EXPORTD_TEST_EFFORT',
  'EXPORTD_TEST_FOLDER',
  'EXPORTD_TEST_DATABASE_URL',
  'EXPORTD_TEST_TEMPORAL_ADDRESS',
  'EXPORTD_TEST_S3_ENDPOINT',
  'EXPORTD_TEST_S3_ACCESS_KEY_ID',
  'EXPORTD_TEST_S3_SECRET_ACCESS_KEY',
]);

/**
 * How much more memory a thread has than a result has bytes: JSON takes up to 24 times its bytes once it is parsed (`[{},{}]`),
 * which is one call. Within it V8 cannot end the thread, and would abort the process.
 */
const memoryOfResult = 32;

/**
 * Reads the settings from an environment. A variable that is empty is not set.
 * @throws SettingsError for the first invalid setting or unknown `EXPORTD_` variable.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  for (const name of Object.keys(environment))
    if (name.startsWith('EXPORTD_') && !(name in settingsSchema.shape) && !otherVariables.has(name))
      throw new SettingsError(`Unknown setting ${name}. See src/config/README.md for all settings.`);
  const given = readProcessEnvironment(
    Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => Boolean(entry[1])),
    ),
  );
  const parsed = settingsSchema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new SettingsError(`${issue?.path.join('.') ?? 'A setting'} is ${issue?.message ?? 'invalid'}.`);
  }
  const { data } = parsed;
  if (data.EXPORTD_USER_HEADER !== undefined && data.EXPORTD_TRUSTED_PROXIES === undefined)
    throw new SettingsError(
      'EXPORTD_USER_HEADER needs EXPORTD_TRUSTED_PROXIES, because anyone else can send the header too: list the proxy there.',
    );
  if (data.EXPORTD_BUILD_ID !== undefined && data.EXPORTD_DEPLOYMENT_NAME === undefined)
    throw new SettingsError(
      'EXPORTD_BUILD_ID needs EXPORTD_DEPLOYMENT_NAME, without which workers are unversioned.',
    );
  const leastMemory = data.EXPORTD_QUERY_MAX_RESULT_SIZE * memoryOfResult;
  if (data.EXPORTD_QUERY_THREAD_MEMORY < leastMemory)
    throw new SettingsError(
      `EXPORTD_QUERY_THREAD_MEMORY is too small for EXPORTD_QUERY_MAX_RESULT_SIZE: it must be at least ${memoryOfResult} times as large, ${leastMemory / 2 ** 20} MiB.`,
    );
  const profile = readTemporalProfile(given);
  return {
    ...data,
    SOURCE_DATABASE_URL: data.SOURCE_DATABASE_URL ?? data.DATABASE_URL,
    TEMPORAL_ADDRESS: profile.address ?? data.TEMPORAL_ADDRESS,
    TEMPORAL_NAMESPACE: profile.namespace ?? data.TEMPORAL_NAMESPACE,
    temporal_profile: profile,
  };
}

/** The path of `EXPORTD_BASE_URL`, without a slash at its end: empty unless a proxy serves exportd below a path of its host. */
export const basePathOf = ({ EXPORTD_BASE_URL }: Pick<Settings, 'EXPORTD_BASE_URL'>): string =>
  EXPORTD_BASE_URL === undefined ? '' : new URL(EXPORTD_BASE_URL).pathname.replace(/\/+$/, '');

/** Where a process could not listen, and what its operator changes. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The settings of the host and the port. */
  readonly settings: { readonly host: string; readonly port: string };
  /** What to know when the port is in use, to follow "Set … to another port". */
  readonly portAdvice?: string;
}

/** The settings error for a failed `listen`; undefined when no setting is at fault. */
export function listenError(
  error: unknown,
  { host, port, settings, portAdvice = '' }: ListenAddress,
): SettingsError | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new SettingsError(
        `Port ${port} on ${host} is in use. Set ${settings.port} to another port${portAdvice}.`,
      );
    case 'EACCES':
      return new SettingsError(
        `This user may not listen on port ${port}. Set ${settings.port} to a port above 1023.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new SettingsError(
        `This machine has no address ${host}. Set ${settings.host} to one of its addresses.`,
      );
    default:
      return undefined;
  }
}
