import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';

const read = (environment: Record<string, string>) =>
  readSettings({ DATABASE_URL: 'postgres://localhost/exportd', ...environment });

describe('a variable of the process', () => {
  it.each([
    ['AWS_ENDPOINT_URL', 'http://elsewhere'],
    ['AWS_ENDPOINT_URL_S3', 'http://elsewhere'],
    ['AWS_REQUEST_CHECKSUM_CALCULATION', 'WHEN_REQUIRED'],
    ['AWS_RESPONSE_CHECKSUM_VALIDATION', 'WHEN_REQUIRED'],
    ['AWS_RETRY_MODE', 'adaptive'],
    ['AWS_MAX_ATTEMPTS', '9'],
    ['AWS_S3_USE_ARN_REGION', 'true'],
    ['PGSSLMODE', 'require'],
    ['PGOPTIONS', '-c datestyle=german'],
    ['NODE_USE_ENV_PROXY', '1'],
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
    ['ALL_PROXY', 'socks5://proxy:1080'],
    ['all_proxy', 'socks5://proxy:1080'],
  ])('%s is refused by name', (name, value) => {
    expect(() => read({ [name]: value })).toThrow(`${name.toUpperCase()} is not supported`);
    expect(() => read({ [name]: '' })).not.toThrow();
  });

  it.each([
    'AWS_ACCESS_KEY_ID',
    'AWS_PROFILE',
    'AWS_REGION',
    'AWS_ENDPOINT_URL_STS',
    'AWS_USE_FIPS_ENDPOINT',
    'AWS_STS_REGIONAL_ENDPOINTS',
    'NODE_EXTRA_CA_CERTS',
    'AWS_CA_BUNDLE',
    'PGPASSWORD',
    'PGTZ',
  ])('%s is none of the refused ones', (name) => {
    expect(() => read({ [name]: 'true' })).not.toThrow();
  });

  it('of a proxy may have either case', () => {
    expect(read({ https_proxy: 'http://a:1', no_proxy: 'b' })).toMatchObject({
      HTTPS_PROXY: 'http://a:1',
      NO_PROXY: [{ host: 'b', port: undefined }],
    });
    expect(read({ HTTPS_PROXY: 'http://a:1', https_proxy: 'http://b:1' }).HTTPS_PROXY).toBe('http://b:1');
  });

  it('of a proxy is a URL, which no message quotes', () => {
    expect(() => read({ HTTPS_PROXY: 'user:secret@proxy:3128' })).toThrow(
      /^HTTPS_PROXY is not a URL of a proxy(?!.*secret)/,
    );
    for (const value of [
      'socks5://user:secret@proxy',
      'http://user:secret@proxy:3128\n',
      'http://user:secret%@proxy:3128',
      'http://user:secret%ff@proxy:3128',
      'http://user:secret@',
    ])
      expect(() => read({ HTTPS_PROXY: value })).toThrow(/^HTTPS_PROXY is not a URL of a proxy(?!.*secret)/);
  });

  it.each(['[fd00::1', '10.0.0.0/33', 'http://store', 'a..b', '10.*', 'a:b'])(
    'NO_PROXY may not list %s, which would have no effect',
    (entry) => {
      expect(() => read({ NO_PROXY: `a,${entry}` })).toThrow(`NO_PROXY is invalid: "${entry}"`);
    },
  );

  it('ALL_PROXY may be set beside the others', () => {
    expect(() => read({ HTTPS_PROXY: 'http://a:1', ALL_PROXY: 'http://a:1' })).not.toThrow();
  });
});
