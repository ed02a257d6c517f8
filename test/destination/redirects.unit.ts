import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { type HttpRequest, HttpResponse } from '@smithy/core/protocols';
import { describe, expect, it } from '@jest/globals';
import { parseS3Config } from '../../src/destination/config.ts';
import { s3Settings } from './bucket_requests.ts';
import { createS3Client } from '../../src/destination/s3_client.ts';

const config = {
  bucket_name: 'bucket',
  region: 'us-east-1',
  prefix: '',
  aws_access_key_id: 'id',
  aws_secret_access_key: 'secret',
};

/** The object "key" in the region that the bucket is in. */
const elsewhere = 'https://bucket.s3.eu-west-1.amazonaws.com/key';

/** A client of AWS whose first answer is a redirect, and the requests that it sends. */
function redirected(headers: Record<string, string>) {
  const settings = s3Settings();
  const client = createS3Client(parseS3Config(config, settings), settings);
  const requests: HttpRequest[] = [];
  client.config.requestHandler = {
    ...client.config.requestHandler,
    handle: (request: HttpRequest) => {
      requests.push(request);
      const isFirst = requests.length === 1;
      const answer = { statusCode: isFirst ? 307 : 200, headers: isFirst ? headers : { etag: '"e"' } };
      return Promise.resolve({ response: new HttpResponse({ ...answer, body: Buffer.alloc(0) }) });
    },
  };
  return { client, requests };
}

describe('a temporary redirect of AWS', () => {
  it('is followed to the region of the bucket, whose name is signed', async () => {
    const { client, requests } = redirected({
      location: 'https://bucket.s3.eu-west-1.amazonaws.com/a%20key?rk=token',
      'x-amz-bucket-region': 'eu-west-1',
    });
    await client.send(new PutObjectCommand({ Bucket: 'bucket', Key: 'a key', Body: Buffer.from('bytes') }));
    expect(requests.map(({ hostname, path, query }) => ({ hostname, path, query }))).toEqual([
      { hostname: 'bucket.s3.us-east-1.amazonaws.com', path: '/a%20key', query: { 'x-id': 'PutObject' } },
      {
        hostname: 'bucket.s3.eu-west-1.amazonaws.com',
        path: '/a%20key',
        query: { 'x-id': 'PutObject', rk: 'token' },
      },
    ]);
    const [first, second] = requests.map(({ headers }) => headers);
    expect(first?.authorization).toContain('/us-east-1/s3/aws4_request');
    expect(second?.authorization).toContain('/eu-west-1/s3/aws4_request');
    expect(second?.host).toBe('bucket.s3.eu-west-1.amazonaws.com');
    expect(requests[1]?.body).toEqual(Buffer.from('bytes'));
    // The next request begins anew.
    await client.send(new GetObjectCommand({ Bucket: 'bucket', Key: 'other' })).catch(() => undefined);
    expect(requests[2]?.headers.authorization).toContain('/us-east-1/');
  });

  it.each([
    ['to a host of others', 'https://bucket.example.com/key'],
    ['to a host that looks like one of AWS', 'https://amazonaws.com.example.com/key'],
    ['to another object', 'https://bucket.s3.eu-west-1.amazonaws.com/backups/key'],
    ['without TLS', 'http://bucket.s3.eu-west-1.amazonaws.com/key'],
    ['to another version', `${elsewhere}?versionId=older`],
    ['to a part of the answer', `${elsewhere}?rk=token&partNumber=1`],
    ['to another operation', `${elsewhere}?x-id=DeleteObject`],
  ])('%s is not followed', async (_, location) => {
    const { client, requests } = redirected({ location });
    const sent = client.send(new GetObjectCommand({ Bucket: 'bucket', Key: 'key' }));
    await expect(sent).rejects.toMatchObject({ type: 'TemporaryRedirect', transient: true, owner: 'none' });
    expect(requests).toHaveLength(1);
  });

  it('deletes no version that it names', async () => {
    const { client, requests } = redirected({ location: `${elsewhere}?versionId=older` });
    const sent = client.send(new DeleteObjectCommand({ Bucket: 'bucket', Key: 'key' }));
    await expect(sent).rejects.toMatchObject({ type: 'TemporaryRedirect' });
    expect(requests).toHaveLength(1);
  });

  it.each(['acl', 'tagging=', 'uploadId=upload&partNumber=1'])(
    'writes nothing but the object: ?%s',
    async (query) => {
      const { client, requests } = redirected({ location: `${elsewhere}?${query}` });
      const sent = client.send(new PutObjectCommand({ Bucket: 'bucket', Key: 'key', Body: Buffer.of(1) }));
      await expect(sent).rejects.toMatchObject({ type: 'TemporaryRedirect' });
      expect(requests).toHaveLength(1);
    },
  );

  it('is followed with the query of the request', async () => {
    const { client, requests } = redirected({
      location: 'https://bucket.s3.eu-west-1.amazonaws.com/?prefix=a%20folder%2F&list-type=2&rk=token',
    });
    await client.send(new ListObjectsV2Command({ Bucket: 'bucket', Prefix: 'a folder/' })).catch(() => null);
    expect(requests[1]?.query).toEqual({ ...requests[0]?.query, rk: 'token' });
  });
});
