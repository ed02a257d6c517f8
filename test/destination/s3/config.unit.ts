import { describe, expect, it } from '@jest/globals';
import { CommandRefused } from '../../../src/domain/errors.ts';
import { parseS3Config } from '../../../src/destination/s3/config.ts';

const least = { bucket_name: 'bucket', region: 'us-east-1', prefix: 'exports' };
const strict = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false };

function refusalOf(config: unknown): { detail: string; attr: string | null } {
  try {
    parseS3Config(config, strict);
  } catch (error) {
    if (error instanceof CommandRefused) return { detail: error.message, attr: error.attr };
    throw error;
  }
  throw new Error('The config was accepted.');
}

describe('the config of an S3 destination', () => {
  it('fills in what is left out or null', () => {
    expect(parseS3Config({ ...least, compression: null, include_events: [], filters: null }, strict)).toEqual(
      {
        ...least,
        endpoint_url: null,
        use_virtual_style_addressing: false,
        file_format: 'JSONLines',
        compression: null,
        encryption: null,
        kms_key_id: null,
      },
    );
  });

  it.each([
    [{ ...least, hello: 1 }, 'hello', "Configuration has unknown field/s: 'hello'"],
    [{ ...least, b: 1, a: 1 }, 'a', "Configuration has unknown field/s: 'a', 'b'"],
    [{ region: 'r', prefix: '' }, 'bucket_name', "Configuration missing required field: 'bucket_name'"],
    [
      { ...least, aws_access_key_id: 'id' },
      'aws_secret_access_key',
      "Configuration missing required field: 'aws_secret_access_key'",
    ],
    [
      { ...least, prefix: 7 },
      'prefix',
      "Configuration has invalid type for 'prefix': got 'number', expected 'string'",
    ],
    [{ ...least, bucket_name: '' }, 'bucket_name', "The following inputs are empty: ['bucket_name']"],
    [{ ...least, prefix: '{when}' }, 'prefix', expect.stringContaining('{when}')],
    [{ ...least, file_format: 'Parquet' }, 'file_format', expect.stringContaining("'JSONLines'")],
    [{ ...least, compression: 'zstd' }, 'compression', expect.stringContaining("'gzip'")],
    [{ ...least, kms_key_id: 'key' }, 'kms_key_id', expect.stringContaining("'aws:kms'")],
    [
      { ...least, include_events: ['$pageview'] },
      'include_events',
      "The field 'include_events' is not supported yet; leave it out.",
    ],
    [
      { ...least, max_file_size_mb: 100 },
      'max_file_size_mb',
      "The field 'max_file_size_mb' is not supported yet; leave it out.",
    ],
  ])('refuses %j and names the member', (config, member, detail) => {
    expect(refusalOf(config)).toEqual({ attr: `destination__config__${member}`, detail });
  });

  it.each([
    'http://127.0.0.1:9000',
    'http://localhost',
    'http://a.localhost.',
    'http://2130706433',
    'http://0x7f.1',
    'http://[::1]',
    'http://[::ffff:10.0.0.1]',
    'https://10.1.2.3',
    'https://172.31.0.1',
    'https://192.168.1.1',
    'http://169.254.169.254/latest',
    'https://[fd00::1]',
    'https://[fe80::1]',
  ])('refuses the private endpoint %s, unless the installation allows it', (endpoint_url) => {
    expect(refusalOf({ ...least, endpoint_url })).toEqual({
      attr: 'destination__config__endpoint_url',
      detail: expect.stringContaining('private or loopback'),
    });
    const allowed = { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: true };
    expect(parseS3Config({ ...least, endpoint_url }, allowed)).toMatchObject({ endpoint_url });
  });

  it.each(['ftp://example.com', 'example.com', 'https://user:word@example.com', 'https://example.com/?a=1'])(
    'refuses %s, which is no endpoint',
    (endpoint_url) => {
      expect(refusalOf({ ...least, endpoint_url }).attr).toBe('destination__config__endpoint_url');
    },
  );

  it.each(['https://s3.eu-central-1.amazonaws.com', 'https://172.15.0.1:9000', 'http://storage.example.com'])(
    'accepts the endpoint %s',
    (endpoint_url) => {
      expect(parseS3Config({ ...least, endpoint_url }, strict).endpoint_url).toBe(endpoint_url);
    },
  );
});
