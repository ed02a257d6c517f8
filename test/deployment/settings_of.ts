import { readSettings, type Settings } from '../../src/config/settings.ts';

/** What a deployment gets from its secret. */
const secrets = {
  DATABASE_URL: 'postgres://exportd@postgres:5432/exportd',
  EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32).toString('base64')}`,
};

/**
 * The settings of a process with these variables.
 * @throws SettingsError when one of them is no setting or has no valid value
 */
export const settingsOf = (variables: Readonly<Record<string, string>>): Settings =>
  readSettings({ ...secrets, ...variables });
