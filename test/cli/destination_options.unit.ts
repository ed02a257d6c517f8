import { describe, expect, it } from '@jest/globals';
import { newDestinationOf } from '../../src/cli/commands/destinations.ts';

const keys = { AWS_ACCESS_KEY_ID: 'AKIA1', AWS_SECRET_ACCESS_KEY: 'secret' };
const bucket = { bucket: 'my-bucket', region: 'eu-central-1' };

describe('a destination of flags', () => {
  it('has the keys of the environment and the region of AWS', async () => {
    const options = {
      bucket: 'my-bucket',
      prefix: 'clicks',
      format: 'Parquet',
      compression: 'zstd',
      compressionLevel: 3,
      bloomFilters: true,
      endpointUrl: 'http://127.0.0.1:9000',
    };
    expect(await newDestinationOf(options, {}, { ...keys, AWS_REGION: 'eu-west-1' })).toEqual({
      type: 'S3',
      config: {
        bucket_name: 'my-bucket',
        region: 'eu-west-1',
        prefix: 'clicks',
        file_format: 'Parquet',
        compression: 'zstd',
        compression_level: 3,
        bloom_filters: true,
        endpoint_url: 'http://127.0.0.1:9000',
        aws_access_key_id: 'AKIA1',
        aws_secret_access_key: 'secret',
      },
    });
  });

  it.each([
    ['a role', { roleArn: 'arn:aws:iam::123456789012:role/exports' }],
    ['the credentials of the machine', { machineCredentials: true }],
  ])('with %s sends no keys, even if the environment has them', async (_, more) => {
    const { config } = await newDestinationOf({ ...bucket, ...more }, {}, keys);
    expect(config).not.toHaveProperty('aws_access_key_id');
    expect(config).not.toHaveProperty('aws_secret_access_key');
  });

  it('is added to the fields of JSON, whose keys are used', async () => {
    const given = { type: 'S3', config: { prefix: 'a', max_file_size_mb: 5, aws_access_key_id: 'AKIA2' } };
    expect(await newDestinationOf({ ...bucket, prefix: 'b', compression: 'none' }, given, {})).toEqual({
      type: 'S3',
      config: {
        ...given.config,
        bucket_name: 'my-bucket',
        region: 'eu-central-1',
        prefix: 'b',
        compression: null,
      },
    });
  });

  it('without flags is the JSON', async () => {
    const given = { type: 'S3', config: { bucket_name: 'b' } };
    expect(await newDestinationOf({}, given, {})).toEqual(given);
  });

  // Tests have no terminal.
  it.each([
    ['keys', bucket, {}, /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/],
    ['a region', { bucket: 'my-bucket' }, keys, /--region or set AWS_REGION/],
    ['keys that last', bucket, { ...keys, AWS_SESSION_TOKEN: 'token' }, /AWS_SESSION_TOKEN/],
  ])('needs %s', async (_, options, environment, message) => {
    await expect(newDestinationOf(options, {}, environment)).rejects.toThrow(message);
  });
});
