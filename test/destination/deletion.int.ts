import { afterAll, describe, expect, it } from '@jest/globals';
import { parseS3Config, withCredentialsOf } from '../../src/destination/config.ts';
import {
  deleteIfUnchanged,
  deleteObject,
  getManifestObject,
  isFromUpload,
  putSmallObject,
} from '../../src/destination/objects.ts';
import { createUpload } from '../../src/destination/multipart.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { configOf, denying, requestsOf, s3Settings, withoutConditionalWrites } from './bucket_requests.ts';

const { signal } = new AbortController();
const options = { ContentType: 'application/json' };
const bucket = useTestBucket();
const requests = requestsOf(bucket);
afterAll(() => requests.close());

const put = (key: string, text: string) => putSmallObject(requests, key, Buffer.from(text), options, signal);
const getManifest = (key: string) => getManifestObject(requests, key, signal);

describe('deleting an object', () => {
  it('is idempotent', async () => {
    await put('a', 'text');
    await deleteObject(requests, 'a', signal);
    await deleteObject(requests, 'a', signal);
    expect(await getManifest('a')).toEqual({ state: 'absent' });
  });

  it('keeps an object that replaced it', async () => {
    await put('b', 'first');
    const seen = await getManifest('b');
    if (seen.state !== 'present') throw new Error('The object is not there.');
    await deleteObject(requests, 'b', signal);
    await put('b', 'second');
    await deleteIfUnchanged(requests, 'b', seen.etag, signal);
    expect(await getManifest('b')).toMatchObject({ text: 'second' });
    await deleteIfUnchanged(withoutConditionalWrites(requests), 'b', seen.etag, signal);
    expect(await getManifest('b')).toEqual({ state: 'absent' });
  });
});

describe('the token of an upload', () => {
  it('identifies the object that was created by it', async () => {
    const upload = await createUpload(requests, 'c', { ...options, firstPartBytes: 5 * 1024 * 1024 }, signal);
    const ours = { key: 'c', upload_token: upload.upload_token };
    expect(await isFromUpload(requests, ours, signal)).toBe(false);
    const part = await upload.putPart(1, Buffer.from('part'), signal);
    await upload.complete([part], 4, signal);
    expect(await isFromUpload(requests, ours, signal)).toBe(true);
    expect(await isFromUpload(requests, { key: 'c', upload_token: 'another' }, signal)).toBe(false);
    expect(await isFromUpload(denying(requests, 'HeadObject'), ours, signal)).toBeNull();
  });
});

describe('the credentials of a newer config', () => {
  const parse = (more: object) => parseS3Config(configOf(bucket, more), s3Settings());

  it('open the same bucket, with the keys of the older config', () => {
    const [older, newer] = [
      parse({ prefix: 'old', file_format: 'CSV' }),
      parse({ prefix: 'new', aws_access_key_id: 'newer', endpoint_url: `${bucket.endpoint}/` }),
    ];
    expect(withCredentialsOf(older, newer)).toMatchObject({
      prefix: 'old',
      file_format: 'CSV',
      aws_access_key_id: 'newer',
    });
  });

  it('are not used for another bucket', () => {
    const [older, newer] = [parse({}), parse({ bucket_name: 'another', aws_access_key_id: 'newer' })];
    expect(withCredentialsOf(older, newer)).toBe(older);
  });
});
