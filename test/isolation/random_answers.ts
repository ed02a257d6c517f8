/** What a store answers whose owner wants to harm others: any status, header and body, and objects that name keys of others. */
import type { ServerResponse } from 'node:http';
import type { InjectedOutcome, ProxiedRequest } from '../e2e/s3_proxy.ts';
import {
  dripping,
  drippingHeaders,
  endless,
  endlessHeaders,
  errorWithCode,
  large,
} from '../setup/hostile_store.ts';
import { random } from './random.ts';

/** What answers are made of. */
export interface Surroundings {
  /** Of the S3 server, and of the bucket there. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Keys of objects that are no business of the owner. */
  readonly keys: readonly [string, ...string[]];
  /** The manifest that exportd has written last; empty before. */
  readonly manifest: string;
}

const statuses = [
  200, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 405, 409, 411, 412, 416, 418, 429, 500, 501, 503,
  599,
] as const;

const codes = [
  'SlowDown',
  'NoSuchKey',
  'NoSuchUpload',
  'NoSuchBucket',
  'PreconditionFailed',
  'AccessDenied',
  'InternalError',
  'ExpiredToken',
  'RequestTimeTooSkewed',
  'InvalidPart',
  '&lt;img src=x&gt;\nEVIL',
] as const;

/** Sends part of a body whose length it states, and breaks off. */
const truncated =
  (bytes: Buffer): ((response: ServerResponse) => void) =>
  (response) => {
    response
      .on('error', () => undefined)
      .writeHead(200, { 'content-length': bytes.length + 100_000, etag: '"truncated"' })
      .write(bytes, () => response.destroy());
  };

const whole =
  (status: number, body: string | Buffer, headers: Record<string, string> = {}): InjectedOutcome =>
  (response) => {
    // Node refuses a body of these.
    response.on('error', () => undefined).writeHead(status, headers);
    response.end(status === 204 || status === 304 ? undefined : body);
  };

/** Does not answer. */
const silent = (): void => undefined;

const redirectTo = (location: string): InjectedOutcome => whole(307, '', { location });

const page = (keys: readonly string[], token: string): string =>
  `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>${keys
    .map(
      (key) =>
        `<Contents><Key>${key}</Key><ETag>&quot;e&quot;</ETag><Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>`,
    )
    .join('')}</ListBucketResult>`;

/** A manifest that names keys of others, and numbers that no run reaches. */
export function plantedManifest(text: string, { keys }: Surroundings): string {
  const manifest = parsed(text);
  const files = Array.isArray(manifest.files) ? (manifest.files as Record<string, unknown>[]) : [];
  const others = () => keys.map((key) => ({ key, rows: 1, bytes: 1, crc32: '00000000', generation: 1 }));
  const planted = {
    ...manifest,
    ...(random.happens(0.5) && { generation: random.of([0, 1, 7, 999_998, 999_999, 1e15]) }),
    ...(random.happens(0.3) && { rows: random.of([0, -1, 1e15]), source_rows: 0 }),
    ...(random.happens(0.3) && { run_id: 'x'.repeat(random.below(1_000)) }),
    files: (files.length > 0 ? files : [{ rows: 1, bytes: 1, crc32: '00000000' }]).map((file) => ({
      ...file,
      key: random.of(keys),
    })),
    earlier: others(),
    kept: others(),
    rejected_file: random.happens(0.5)
      ? null
      : { key: random.of(keys), rows: 1, bytes: 1, crc32: '00000000' },
  };
  return JSON.stringify(planted);
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** A commit of a table that adds and removes files of others. */
export function plantedCommit({ bucket, keys }: Surroundings): string {
  const path = (): string => {
    const key = random.of(keys);
    return random.of([
      `../../${key}`,
      `/${key}`,
      `s3://${bucket}/${key}`,
      encodeURIComponent(`../../${key}`),
      key,
    ]);
  };
  const file = { partitionValues: {}, size: 1, modificationTime: 1, dataChange: true };
  return Array.from({ length: 1 + random.below(20) }, () =>
    JSON.stringify(
      random.happens(0.5)
        ? { add: { ...file, path: path() } }
        : { remove: { path: path(), deletionTimestamp: 1, dataChange: true } },
    ),
  ).join('\n');
}

/** Bytes that are no object of exportd, up to `maxBytes`. */
export function damagedBytes(maxBytes: number): Buffer {
  const size = 1 + random.below(maxBytes);
  return random.of([
    () => random.bytes(Math.min(size, 100_000)),
    () => Buffer.alloc(size),
    () => Buffer.alloc(size, '['),
    () => Buffer.alloc(size, '{"a":'),
    () => Buffer.alloc(size, '[],'),
    () => Buffer.alloc(size, '{"add":{"path":"a"}}\n'),
    () => Buffer.alloc(size, ','),
    () => Buffer.alloc(0),
  ])();
}

const mebibyte = 1_048_576;

/** Answers by their names, for the table at the end. */
export const answers = {
  status: () =>
    whole(random.of(statuses), random.of(['', '<html>No</html>', '{"error":{}}', '<Error/>', '\0\u0001'])),
  'error code': () => errorWithCode(random.of(codes), random.of([400, 403, 404, 409, 412, 500, 503])),
  'error code of 1 MB': () => errorWithCode('x'.repeat(mebibyte), random.of([400, 403, 500])),
  'success with an error': () => errorWithCode(random.of(codes), 200),
  'endless body': () => endless(random.of([200, 206, 301, 403, 404, 500, 503])),
  'endless body of XML': () =>
    endless(random.of([200, 403]), '<?xml version="1.0"?><ListBucketResult><Name>'),
  'endless headers': () => endlessHeaders,
  'dripping body': () => dripping(random.of([200, 403, 500]), '<'),
  'dripping object': () => dripping(200, '{', { 'content-length': '100000', etag: '"drip"' }),
  'dripping headers': () => drippingHeaders,
  silence: () => silent,
  broken: () => 'broken',
  truncated: () => truncated(random.bytes(random.below(2_000))),
  redirect: ({ key }, { endpoint, bucket, keys }) =>
    redirectTo(
      random.of([
        `${endpoint}/${bucket}/${random.of(keys)}`,
        `${endpoint}/${bucket}/${key}`,
        'http://169.254.169.254/latest/meta-data/',
        'http://127.0.0.1:1/',
        'file:///etc/passwd',
        '',
      ]),
    ),
  'list without an end': (_, { keys }) =>
    whole(
      200,
      page(
        Array.from(
          { length: 1_000 },
          () => `${random.of(keys)}${random.of(['', '.json', `-${random.below(9_999)}`])}`,
        ),
        String(random.below(1e9)),
      ),
    ),
  'planted manifest': (_, surroundings) =>
    whole(200, plantedManifest(surroundings.manifest, surroundings), { etag: '"planted"' }),
  'planted commit': (_, others) => whole(200, plantedCommit(others), { etag: '"planted"' }),
  'planted last checkpoint': () =>
    whole(
      200,
      JSON.stringify({ version: random.of([0, 9, -1, 1e15]), size: random.of([1, 1e15]), parts: 1e9 }),
      {
        etag: '"planted"',
      },
    ),
  'damaged object': () => whole(200, damagedBytes(8 * mebibyte), { etag: '"damaged"' }),
  'large object': () =>
    large(random.below(400 * mebibyte), Buffer.alloc(65_536, random.of([' ', '[', '{"a":1}\n']))),
  'upload id of 1 MB': () =>
    whole(
      200,
      `<InitiateMultipartUploadResult><UploadId>${'u'.repeat(mebibyte)}</UploadId></InitiateMultipartUploadResult>`,
    ),
} satisfies Record<string, (request: ProxiedRequest, surroundings: Surroundings) => InjectedOutcome>;

type AnswerName = keyof typeof answers;
export const answerNames = Object.keys(answers) as [AnswerName, ...AnswerName[]];
