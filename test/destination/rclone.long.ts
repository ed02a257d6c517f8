import { GetObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testS3 } from '../../src/destination/bucket_test.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { createUpload, listParts } from '../../src/destination/multipart.ts';
import type { S3Requests } from '../../src/destination/requests.ts';
import { type OtherStore, startStore } from '../setup/stores.ts';
import { configOf, requestsOf, s3Settings } from './bucket_requests.ts';

/** Its answers differ from those of S3 in names of elements, and it ignores conditions. */
describe('rclone serve s3', () => {
  const { signal } = new AbortController();
  const key = 'exports/hour.jsonl';
  let store: OtherStore;
  let requests: S3Requests;
  beforeAll(async () => {
    store = await startStore('rclone');
    requests = requestsOf(store.bucket);
  });
  afterAll(async () => {
    requests.close();
    await store.close();
  });

  it('joins the parts of an upload', async () => {
    const first = Buffer.alloc(5 * 1024 * 1024, 'a');
    const second = Buffer.from('the end');
    const options = { ContentType: 'application/jsonl', firstPartBytes: first.length };
    const upload = await createUpload(requests, key, options, signal);
    const parts = [await upload.putPart(1, first, signal), await upload.putPart(2, second, signal)];
    expect(await listParts(requests, key, upload.upload_id, signal)).toEqual([
      { ...parts[0], bytes: first.length },
      { ...parts[1], bytes: second.length },
    ]);
    await upload.complete(parts, first.length + second.length, signal);
    const { bucket, client } = store.bucket;
    const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    expect(await Body?.transformToString()).toBe(`${first.toString()}the end`);
  });

  it('passes the destination test, except for conditions', async () => {
    const settings = s3Settings({ EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
    const { steps } = await testS3(parseS3Config(configOf(store.bucket), settings), settings);
    expect(steps.map(({ name, result }) => [name, result.status])).toEqual([
      ['bucket', 'Passed'],
      ['write', 'Passed'],
      ['read back', 'Passed'],
      ['conditional write', 'Failed'],
      ['multipart list parts', 'Passed'],
      ['parts', 'Passed'],
      ['delete', 'Passed'],
    ]);
  });
});
