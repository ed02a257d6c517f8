import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { readSettings, SettingsError } from '../../src/config/settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'exportd-profile-'));
afterAll(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};
const read = (environment: Record<string, string>) =>
  readSettings({ DATABASE_URL: 'unused', ...environment });

describe('the profile of Temporal', () => {
  it('is read from the configuration folder of the user, and overridden by the environment', () => {
    mkdirSync(join(folder, 'temporalio'));
    write(
      'temporalio/temporal.toml',
      '[profile.default]\naddress = "cloud:7233"\nnamespace = "shop"\napi_key = "secret"',
    );
    const settings = read({ XDG_CONFIG_HOME: folder, TEMPORAL_NAMESPACE: 'other' });
    expect(settings).toMatchObject({ TEMPORAL_ADDRESS: 'cloud:7233', TEMPORAL_NAMESPACE: 'other' });
    expect(settings.temporal_profile.apiKey).toBe('secret');
  });

  it('is empty without a file, and with a file that has no profile', () => {
    const defaults = { TEMPORAL_ADDRESS: '127.0.0.1:7233', TEMPORAL_NAMESPACE: 'default' };
    expect(read({})).toMatchObject(defaults);
    expect(read({ TEMPORAL_CONFIG_FILE: write('empty.toml', '') })).toMatchObject(defaults);
  });

  it('has headers whose names are those of gRPC', () => {
    const { grpcMeta } = read({ TEMPORAL_GRPC_META_X_TENANT_ID_OF_SHOP: '1' }).temporal_profile;
    expect(grpcMeta).toEqual({ 'x-tenant-id-of-shop': '1' });
  });

  it.each<[string, Record<string, string>, string]>([
    ['a file that does not exist', { TEMPORAL_CONFIG_FILE: '/nowhere.toml' }, '/nowhere.toml'],
    ['a profile that does not exist', { TEMPORAL_PROFILE: 'staging' }, "'staging' not found"],
    ['a file that is not TOML', { TEMPORAL_CONFIG_FILE: write('bad.toml', '[profile') }, 'cannot be read'],
    // The library would take it for "no TLS".
    ['a word for TLS', { TEMPORAL_TLS: 'yes' }, 'TEMPORAL_TLS is yes: write one of true, false, 1, 0.'],
    ['no verification', { TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: 'true' }, 'is not supported'],
    // The library would connect without the certificate.
    ['a certificate without a key', { TEMPORAL_TLS_CLIENT_CERT_PATH: 'client.pem' }, 'need each other'],
    [
      'a path and a text',
      { TEMPORAL_TLS_SERVER_CA_CERT_PATH: 'ca.pem', TEMPORAL_TLS_SERVER_CA_CERT_DATA: 'x' },
      'Cannot specify both',
    ],
  ])('is an error with %s', (_, environment, message) => {
    expect(() => read(environment)).toThrow(SettingsError);
    expect(() => read(environment)).toThrow(message);
  });
});
