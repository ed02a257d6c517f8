import type { z } from 'zod';
import { SettingsError } from './settings_error.ts';
import { settingsSchema } from './setting_groups.ts';
import { readTemporalProfile, type ClientConfigProfile } from './temporal_profile.ts';

export { SettingsError };

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
  'EXPORTD_TEST_EFFORT',
  'EXPORTD_TEST_FOLDER',
  'EXPORTD_TEST_DATABASE_URL',
  'EXPORTD_TEST_TEMPORAL_ADDRESS',
  'EXPORTD_TEST_S3_ENDPOINT',
  'EXPORTD_TEST_S3_ACCESS_KEY_ID',
  'EXPORTD_TEST_S3_SECRET_ACCESS_KEY',
]);

/**
 * Reads the settings from an environment. A variable that is empty is not set.
 * @throws SettingsError for the first invalid setting or unknown `EXPORTD_` variable.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  for (const name of Object.keys(environment))
    if (name.startsWith('EXPORTD_') && !(name in settingsSchema.shape) && !otherVariables.has(name))
      throw new SettingsError(`Unknown setting ${name}. See src/config/README.md for all settings.`);
  const given = Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
  const parsed = settingsSchema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new SettingsError(`${issue?.path.join('.') ?? 'A setting'} is ${issue?.message ?? 'invalid'}.`);
  }
  const { data } = parsed;
  const profile = readTemporalProfile(given);
  return {
    ...data,
    SOURCE_DATABASE_URL: data.SOURCE_DATABASE_URL ?? data.DATABASE_URL,
    TEMPORAL_ADDRESS: profile.address ?? data.TEMPORAL_ADDRESS,
    TEMPORAL_NAMESPACE: profile.namespace ?? data.TEMPORAL_NAMESPACE,
    temporal_profile: profile,
  };
}
