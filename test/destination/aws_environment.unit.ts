import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { type HttpRequest, HttpResponse } from '@smithy/core/protocols';
import { describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { s3Settings } from './bucket_requests.ts';
import { createS3Client } from '../../src/destination/s3_client.ts';

/** The host that a request is sent to in an environment, and what the client has decided. */
async function observe(environment: Record<string, string>, more: object = {}) {
  Object.assign(process.env, environment);
  const settings = s3Settings();
  const config = {
    bucket_name: 'bucket',
    region: 'us-east-1',
    prefix: '',
    aws_access_key_id: 'id',
    aws_secret_access_key: 'secret',
    ...more,
  };
  const client = createS3Client(parseS3Config(config, settings), settings);
  let host = '';
  client.config.requestHandler = {
    ...client.config.requestHandler,
    handle: (request: HttpRequest) => {
      host = request.hostname;
      return Promise.resolve({
        response: new HttpResponse({ statusCode: 200, headers: { etag: '"e"' }, body: Buffer.alloc(0) }),
      });
    },
  };
  try {
    await client.send(new HeadObjectCommand({ Bucket: 'bucket', Key: 'key' }));
    const { maxAttempts, requestChecksumCalculation, responseChecksumValidation } = client.config;
    return {
      host,
      attempts: await maxAttempts(),
      checksums: [await requestChecksumCalculation(), await responseChecksumValidation()],
    };
  } finally {
    for (const name of Object.keys(environment)) Reflect.deleteProperty(process.env, name);
  }
}

const asDecided = {
  host: 'bucket.s3.us-east-1.amazonaws.com',
  attempts: 2,
  checksums: ['WHEN_SUPPORTED', 'WHEN_SUPPORTED'],
};

describe('requests to S3', () => {
  it.each(['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'])('go to AWS whatever %s says', async (name) => {
    expect(await observe({ [name]: 'http://elsewhere.example' })).toEqual(asDecided);
  });

  it('are the same whatever a profile says', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'exportd-profile-')), 'config');
    const lines = [
      '[profile other]',
      'region = eu-west-1',
      'endpoint_url = http://elsewhere.example',
      'max_attempts = 9',
      'retry_mode = adaptive',
      'request_checksum_calculation = when_required',
      'response_checksum_validation = when_required',
      's3_use_arn_region = true',
    ];
    writeFileSync(file, lines.join('\n'));
    expect(await observe({ AWS_CONFIG_FILE: file, AWS_PROFILE: 'other' })).toEqual(asDecided);
  });

  it.each([
    ['AWS_USE_FIPS_ENDPOINT', 'bucket.s3-fips.us-east-1.amazonaws.com'],
    ['AWS_USE_DUALSTACK_ENDPOINT', 'bucket.s3.dualstack.us-east-1.amazonaws.com'],
  ])(
    'go to the hosts of AWS that %s chooses, and never elsewhere than to endpoint_url',
    async (name, host) => {
      expect(await observe({ [name]: 'true' })).toMatchObject({ host });
      const endpoint_url = 'https://store.example';
      expect(await observe({ [name]: 'true' }, { endpoint_url })).toMatchObject({ host: 'store.example' });
    },
  );
});
