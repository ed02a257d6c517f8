import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKeyRing, SecretUnreadable } from '../../src/config/key_ring.ts';
import { readSettings, settingGroups, SettingsError, settingsSchema } from '../../src/config/settings.ts';
import { settingsTable, withGeneratedTables } from '../../src/config/settings_table.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';

describe('secured connections', () => {
  const password = 'correct-horse';
  let file: string;
  beforeAll(() => {
    file = join(mkdtempSync(join(tmpdir(), 'exportd-')), 'ca.pem');
    writeFileSync(file, createCertificateAuthority().certificate);
  });
  const urlWith = (parameters: string) => `postgresql://exportd:${password}@db.example/exportd?${parameters}`;
  const read = (url: string) => readSettings({ DATABASE_URL: url }).DATABASE_URL;

  describe('the URL of a database', () => {
    it('stays as it is without TLS parameters', () => {
      for (const url of [
        urlWith(''),
        urlWith('options=-c%20search_path=app'),
        'postgresql:///exportd',
        'postgres:///app?host=/run/postgresql',
        'no URL',
      ])
        expect(read(url)).toBe(url);
    });

    it.each(['disable', 'require', 'verify-full'])('has the meaning of libpq with sslmode=%s', (mode) => {
      const { searchParams } = new URL(read(urlWith(`sslmode=${mode}`)));
      expect(Object.fromEntries(searchParams)).toEqual({ sslmode: mode, uselibpqcompat: 'true' });
    });

    it.each([
      ['sslmode=prefer', 'sslmode must be one of'],
      ['sslmode=allow', 'sslmode must be one of'],
      ['sslmode=verify-ca', 'sslrootcert'],
      ['sslmode=require&sslrootcert=system', 'verify-full'],
      [
        'sslmode=verify-full&sslrootcert=/nowhere/ca.pem',
        '/nowhere/ca.pem of sslrootcert cannot be read (ENOENT)',
      ],
      ['sslmode=verify-full&sslcert=/nowhere/client.pem', 'sslkey'],
      ['sslrootcert=/nowhere/ca.pem', 'sslmode=verify-full'],
      [
        'target_session_attrs=read-write',
        'it has target_session_attrs, and exportd connects to the one host',
      ],
      ['host=a,b', 'it names several hosts'],
      ['application_name=x', 'exportd recognizes its own sessions'],
      ['sslmode=require&channel_binding=require', 'it has channel_binding, and'],
      ['connect_timeout=10', 'exportd sets that itself'],
      ['service=main', 'write host, database, user and password into the URL'],
    ])('is rejected with %s, without its password', (parameters, message) => {
      const error: unknown = (() => {
        try {
          return read(urlWith(parameters));
        } catch (thrown) {
          return thrown;
        }
      })();
      expect(error).toBeInstanceOf(SettingsError);
      expect(String(error)).toContain(message);
      expect(String(error)).toContain('DATABASE_URL');
      expect(String(error)).not.toContain(password);
    });

    it.each([
      [`postgres://${password}:5432,b:5432/app?target_session_attrs=any`, 'it names several hosts'],
      [`postgres://u:${password}@a,b/app`, 'HAProxy, PgBouncer or a virtual IP'],
      [`host=a password=${password} dbname=app`, 'write it as a URL'],
      [`postgres://u:${password}#@a:5432/app`, 'Characters such as'],
      [`postgres://a:54x/${password}`, 'it is not a URL'],
    ])('is rejected as %s (%#)', (url, message) => {
      expect(() => read(url)).toThrow(message);
      expect(() => read(url)).not.toThrow(password);
    });

    it('names files that can be read', () => {
      expect(
        new URL(read(urlWith(`sslmode=verify-ca&sslrootcert=${file}`))).searchParams.get('sslrootcert'),
      ).toBe(file);
    });
  });

  describe('the CA bundle of S3', () => {
    const readBundle = (path: string) =>
      readSettings({ DATABASE_URL: 'unused', EXPORTD_S3_CA_BUNDLE: path }).EXPORTD_S3_CA_BUNDLE;

    it('is the text of its file', () => {
      expect(readBundle(file)).toContain('BEGIN CERTIFICATE');
      expect(readSettings({ DATABASE_URL: 'unused' }).EXPORTD_S3_CA_BUNDLE).toBeUndefined();
    });

    it.each(['/nowhere/ca.pem', import.meta.filename])('is rejected when it is no PEM file: %s', (path) => {
      expect(() => readBundle(path)).toThrow(`EXPORTD_S3_CA_BUNDLE is ${path}`);
    });
  });
});

describe('the key ring', () => {
  const key = (): string => randomBytes(32).toString('base64');

  it('opens secrets that the first or an older key sealed', () => {
    const [older, newer] = [`a:${key()}`, `b:${key()}`];
    const sealed = createKeyRing(older).seal('the secret', 'location');
    expect(sealed).not.toContain('the secret');
    expect(createKeyRing(`${newer},${older}`).open(sealed, 'location')).toBe('the secret');
    expect(createKeyRing(`${newer},${older}`).seal('x', 'location')).toMatch(/^b:/);
  });

  it('seals the same secret differently each time', () => {
    const ring = createKeyRing(`a:${key()}`);
    expect(ring.seal('secret', 'location')).not.toBe(ring.seal('secret', 'location'));
  });

  it('rejects secrets that were moved, changed, truncated or sealed with an unknown key', () => {
    const ring = createKeyRing(`a:${key()}`);
    const sealed = ring.seal('secret', 'location');
    const flipped = sealed.replace(/.(?==*$)/, (letter) => (letter === 'A' ? 'Q' : 'A'));
    expect(() => ring.open(sealed, 'another location')).toThrow(SecretUnreadable);
    expect(() => ring.open(flipped, 'location')).toThrow(SecretUnreadable);
    expect(() => ring.open(sealed.slice(0, 12), 'location')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`a:${key()}`).open(sealed, 'location')).toThrow(SecretUnreadable);
    expect(() => createKeyRing(`b:${key()}`).open(sealed, 'location')).toThrow('"a"');
  });

  it.each([undefined, ''])('rejects the setting %j', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
  });

  it.each(['nonsense', 'a:short', `:${key()}`])('rejects the setting %j without showing it', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
    expect(() => createKeyRing(setting)).not.toThrow(setting);
  });
});

describe('the configuration', () => {
  const read = (environment: Record<string, string>) =>
    readSettings({ DATABASE_URL: 'unused', ...environment });

  describe('settings', () => {
    it.each([
      ['500ms', 500],
      ['0s', 0],
      ['1.5s', 1_500],
      ['30s', 30_000],
      ['10m', 600_000],
      ['24h', 86_400_000],
      ['7d', 604_800_000],
    ])('read the duration %s as %i ms', (text, expected) => {
      expect(read({ EXPORTD_SETTLE_DELAY: text }).EXPORTD_SETTLE_DELAY).toBe(expected);
    });

    it.each([
      ['1048576B', 1_048_576],
      ['2048KiB', 2_097_152],
      ['64MiB', 67_108_864],
      ['1.5GiB', 1_610_612_736],
    ])('read the size %s as %i bytes', (text, expected) => {
      expect(read({ EXPORTD_MEMORY_BUDGET: text }).EXPORTD_MEMORY_BUDGET).toBe(expected);
    });

    const duration = 'write a duration with its unit, such as 30s.';
    const size = 'write a size with its unit, such as 64MiB.';
    it.each([
      ['EXPORTD_SETTLE_DELAY', '30000', `is 30000: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '0', `is 0: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '-1s', `is -1s: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '30 s', `is 30 s: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '0.5ms', `is 0.5ms: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '2w', `is 2w: ${duration}`],
      ['EXPORTD_SETTLE_DELAY', '25d', 'is 25d: it must be at most 24d.'],
      ['EXPORTD_HEARTBEAT_TIMEOUT', '0s', 'is 0s: it must be at least 500ms.'],
      ['EXPORTD_MEMORY_BUDGET', '67108864', `is 67108864: ${size}`],
      ['EXPORTD_MEMORY_BUDGET', '64MB', `is 64MB: ${size}`],
      ['EXPORTD_S3_PART_SIZE', '1MiB', 'is 1MiB: it must be at least 5MiB.'],
      ['EXPORTD_PORT', 'http', 'is http: write a whole number from 0 to 65535.'],
      ['EXPORTD_PORT', '99999', 'is 99999: it must be at most 65535.'],
      ['EXPORTD_EXPORT_SLOTS', '1e3', 'is 1e3: write a whole number, at least 1.'],
      ['EXPORTD_EXPORT_SLOTS', '0', 'is 0: it must be at least 1.'],
      ['EXPORTD_JITTER_SHORT_FRACTION', '2', 'is 2: it must be at most 1.'],
      ['EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN', 'yes', 'is yes: write one of true, false, 1, 0.'],
      [
        'EXPORTD_ROLE_ACCOUNTS',
        '123456789012,me',
        'is invalid: write ids of AWS accounts, such as 123456789012,210987654321.',
      ],
      ['EXPORTD_BASE_URL', 'localhost', 'is not a URL: write one such as https://host.'],
      [
        'EXPORTD_BASE_URL',
        'https://host/tools?x',
        'is invalid: it has a scheme, a host and a path alone, such as https://host/tools/exportd.',
      ],
      [
        'EXPORTD_BASE_URL',
        'https://host/"a"&b',
        'is invalid: its path has letters, digits and the characters - . _ ~ alone.',
      ],
    ])('reject %s=%s', (name, value, message) => {
      expect(() => read({ [name]: value })).toThrow(new SettingsError(`${name} ${message}`));
    });

    it('reject a missing DATABASE_URL and unknown names', () => {
      expect(() => readSettings({})).toThrow(new SettingsError('DATABASE_URL is missing.'));
      expect(() => read({ EXPORTD_COLOUR: '1' })).toThrow('Unknown setting EXPORTD_COLOUR.');
    });

    it('reject a header of users without trusted proxies, and names that no header has', () => {
      const proxies = { EXPORTD_TRUSTED_PROXIES: '10.0.0.1' };
      expect(() => read({ EXPORTD_USER_HEADER: 'X-User' })).toThrow(
        /EXPORTD_USER_HEADER needs EXPORTD_TRUSTED_PROXIES/,
      );
      expect(() => read({ ...proxies, EXPORTD_USER_HEADER: 'X User' })).toThrow(/EXPORTD_USER_HEADER/);
      expect(read({ ...proxies, EXPORTD_USER_HEADER: 'X-User' }).EXPORTD_USER_HEADER).toBe('x-user');
    });

    it('reject results that a thread of queries has no memory for', () => {
      expect(() => read({ EXPORTD_QUERY_MAX_RESULT_SIZE: '17MiB' })).toThrow(
        'EXPORTD_QUERY_THREAD_MEMORY is too small for EXPORTD_QUERY_MAX_RESULT_SIZE: it must be at least 32 times as large, 544 MiB.',
      );
      const more = { EXPORTD_QUERY_MAX_RESULT_SIZE: '17MiB', EXPORTD_QUERY_THREAD_MEMORY: '544MiB' };
      expect(read(more)).toMatchObject({ EXPORTD_QUERY_THREAD_MEMORY: 544 * 2 ** 20 });
    });

    it('reject a Build ID without a deployment, and names that Temporal rejects', () => {
      const deployment = { EXPORTD_DEPLOYMENT_NAME: 'exportd' };
      expect(() => read({ EXPORTD_BUILD_ID: '1' })).toThrow('EXPORTD_BUILD_ID needs EXPORTD_DEPLOYMENT_NAME');
      expect(() => read({ EXPORTD_DEPLOYMENT_NAME: 'exportd.eu' })).toThrow(
        'EXPORTD_DEPLOYMENT_NAME is not a name',
      );
      expect(() => read({ ...deployment, EXPORTD_BUILD_ID: 'a:b' })).toThrow('EXPORTD_BUILD_ID is not an id');
      expect(read({ ...deployment, EXPORTD_BUILD_ID: '0.3.0' })).toMatchObject({ EXPORTD_BUILD_ID: '0.3.0' });
    });

    it('ignore empty variables', () => {
      expect(read({ EXPORTD_SETTLE_DELAY: '' }).EXPORTD_SETTLE_DELAY).toBe(30_000);
    });

    it.each([
      ['loopback', 'loopback'],
      ['1', true],
      ['true', true],
      ['0', false],
      ['', false],
    ])('read EXPORTD_ALLOW_PRIVATE_ENDPOINTS=%s', (value, expected) => {
      const settings = read({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: value });
      expect(settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS).toBe(expected);
    });
  });

  describe('the README of the settings', () => {
    const settings = Object.values(settingGroups).flatMap((group) => Object.entries(group));

    it('describes every setting', () => {
      expect(settings.map(([name]) => name)).toEqual(Object.keys(settingsSchema.shape));
      expect(settings.filter(([, schema]) => !schema.description).map(([name]) => name)).toEqual([]);
    });

    it('lists each setting once, the ten that a deployment decides first before the others', () => {
      const listed = [...settingsTable().matchAll(/^[|-] `([A-Z0-9_]+)`/gm)].map(([, name]) => name);
      expect(listed.toSorted()).toEqual(settings.map(([name]) => name).toSorted());
      const first = settings.filter(([, schema]) => schema.meta()?.when !== undefined);
      expect(listed.slice(0, 10).toSorted()).toEqual(first.map(([name]) => name).toSorted());
    });

    it('is up to date: run node src/config/write_settings_table.ts', () => {
      const readme = readFileSync(join(import.meta.dirname, '../../src/config/README.md'), 'utf8');
      const cells = (text: string) => text.replace(/ +/g, ' ').replace(/-+/g, '-');
      expect(cells(withGeneratedTables(readme))).toBe(cells(readme));
    });
  });
});

describe('the profile of Temporal', () => {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-profile-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const read = (environment: Record<string, string>) =>
    readSettings({ DATABASE_URL: 'unused', ...environment });

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
