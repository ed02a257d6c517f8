import { randomUUID } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { GetObjectCommand, HeadObjectCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { HttpRequest } from '@smithy/core/protocols';
import { Hash } from '@smithy/core/serde';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testS3 } from '../../src/destination/bucket_test.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { toDestinationError } from '../../src/destination/errors.ts';
import { abortUpload, createUpload, listParts } from '../../src/destination/multipart.ts';
import type { S3Requests } from '../../src/destination/requests.ts';
import { blockRequests } from '../e2e/request_gate.ts';
import { createS3Proxy } from '../e2e/s3_proxy.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import { openTlsProxy, type TlsProxy } from '../setup/tls_proxy.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import {
  bucketAt,
  configOf,
  denying,
  losingResponses,
  openBucket,
  requestError,
  requestsOf,
  s3Settings,
  withoutConditionalWrites,
} from './bucket_requests.ts';
import { type ReceivedRequest, startFakeServer } from './fake_server.ts';

declare module 'node:tls' {
  /** Node 24, which runs the tests, has it. The types are those of the oldest Node that runs the package. */
  function setDefaultCACertificates(certificates: readonly string[]): void;
}

/** SHA-256 as the signer calls it. */
class Sha256 extends Hash {
  constructor(secret?: ConstructorParameters<typeof Hash>[1]) {
    super('sha256', secret);
  }
}

/** Requests whose lists of parts have so many on each page, as a server has a thousand. Collects how many were on each. */
const withShortPages = (requests: S3Requests, size: number, sizes: number[]): S3Requests => ({
  ...requests,
  send: (operation, signal, call, options) =>
    requests.send(
      operation,
      signal,
      (client, given) => {
        client.middlewareStack.add(
          (next) => async (args) => {
            const answer = await next({ ...args, input: { ...args.input, MaxParts: size } });
            sizes.push('Parts' in answer.output ? (answer.output.Parts?.length ?? 0) : 0);
            return answer;
          },
          { step: 'initialize', name: 'shortPages', override: true },
        );
        return call(client, given);
      },
      options,
    ),
});

describe('multipart', () => {
  const { signal } = new AbortController();
  const options = { ContentType: 'application/jsonl', firstPartBytes: 5 * 1024 * 1024 };
  const first = Buffer.alloc(options.firstPartBytes, 'a');
  const second = Buffer.from('the end');
  const length = first.length + second.length;

  const bucket = useTestBucket();
  const requests = requestsOf(bucket);
  afterAll(() => requests.close());

  const textOf = async (key: string): Promise<string> => {
    const { Body } = await bucket.client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
    return (await Body?.transformToString()) ?? '';
  };

  async function uploadTo(key: string, through = requests) {
    const upload = await createUpload(through, key, options, signal);
    const end = await upload.putPart(1_000, second, signal);
    const start = await upload.putPart(1, first, signal);
    return { upload, parts: [start, end] };
  }

  describe('a multipart upload', () => {
    it('joins its parts in order, and can be completed twice', async () => {
      const { upload, parts } = await uploadTo('twice');
      expect(await listParts(requests, 'twice', upload.upload_id, signal)).toEqual([
        { ...parts[0], bytes: first.length },
        { ...parts[1], bytes: second.length },
      ]);
      await upload.complete(parts, length, signal);
      await upload.complete(parts, length, signal);
      expect(await textOf('twice')).toBe(`${first.toString()}the end`);
    });

    it('is created by rclone too, whose answer has another name than that of S3', async () => {
      const answer =
        '<InitiateMultipartUpload><Key>key</Key><UploadId>7</UploadId></InitiateMultipartUpload>';
      const server = await startFakeServer((_, response) => response.end(answer));
      const through = requestsOf(bucketAt(server.endpoint), {}, { EXPORTD_S3_RETRY_BUDGET: '0s' });
      expect((await createUpload(through, 'key', options, signal)).upload_id).toBe('7');
      through.close();
      await server.close();
    });

    it('is completed although the response was lost', async () => {
      const { upload, parts } = await uploadTo('lost', losingResponses(requests, 'CompleteMultipartUpload'));
      await upload.complete(parts, length, signal);
      const head = new HeadObjectCommand({ Bucket: bucket.bucket, Key: 'lost' });
      expect(await bucket.client.send(head)).toMatchObject({ ContentLength: length });
    });

    it('never overwrites an object, even of the same size', async () => {
      const standing = await uploadTo('taken');
      await standing.upload.complete(standing.parts, length, signal);
      const late = await createUpload(requests, 'taken', options, signal);
      const part = await late.putPart(1, Buffer.alloc(length, 'z'), signal);
      await expect(late.complete([part], length, signal)).rejects.toMatchObject({
        type: 'UploadNotFound',
        transient: true,
      });
      expect(await textOf('taken')).toMatch(/^a.*the end$/);
      await abortUpload(requests, 'taken', late.upload_id, signal);
    });

    it('goes on when the session of its role expires between its parts', async () => {
      // A session ends when the next one begins.
      const sessions: string[] = [];
      const sts = await startFakeServer((_, response) => {
        sessions.push(randomUUID());
        const ends = new Date(Date.now() + 60_000).toISOString();
        response.writeHead(200, { 'content-type': 'text/xml' })
          .end(`<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
            <AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>
            <SessionToken>${sessions.at(-1) ?? ''}</SessionToken><Expiration>${ends}</Expiration>
            </Credentials></AssumeRoleResult></AssumeRoleResponse>`);
      });
      // In front of the real store, which knows no sessions: requests of the current one are signed with its keys.
      const tokens: unknown[] = [];
      const { accessKeyId, secretAccessKey, region } = bucket;
      const signer = new SignatureV4({
        service: 's3',
        region,
        uriEscapePath: false,
        sha256: Sha256,
        credentials: { accessKeyId, secretAccessKey },
      });
      const store = await startFakeServer((request, response) => {
        tokens.push(request.headers['x-amz-security-token']);
        if (tokens.at(-1) !== sessions.at(-1)) {
          response.writeHead(400).end('<Error><Code>ExpiredToken</Code></Error>');
          return;
        }
        void forward(request, response);
      });
      async function forward(
        { method, path, headers, body }: ReceivedRequest,
        response: ServerResponse,
      ): Promise<void> {
        const url = new URL(path, bucket.endpoint);
        const sent = Object.entries(headers).filter(([name]) =>
          /^(content-md5|if-|x-amz-(checksum|meta))/.test(name),
        );
        const signed = await signer.sign(
          new HttpRequest({
            method,
            path: url.pathname,
            query: Object.fromEntries(url.searchParams),
            body,
            headers: { ...(Object.fromEntries(sent) as Record<string, string>), host: url.host },
          }),
        );
        const received = await fetch(url, {
          method,
          headers: signed.headers,
          ...(body !== '' && { body }),
        });
        response
          .writeHead(received.status, { etag: received.headers.get('etag') ?? '' })
          .end(Buffer.from(await received.arrayBuffer()));
      }
      process.env.AWS_ENDPOINT_URL_STS = sts.endpoint;
      const withRole = requestsOf(
        { ...bucket, endpoint: store.endpoint },
        { role_arn: 'arn:aws:iam::123456789012:role/exports' },
      );
      try {
        const { upload, parts } = await uploadTo('sessions', withRole);
        await upload.complete(parts, length, signal);
        expect(await textOf('sessions')).toBe(`${first.toString()}the end`);
        expect(tokens.length).toBeGreaterThanOrEqual(4);
        expect(new Set(tokens).size).toBe(tokens.length);
      } finally {
        delete process.env.AWS_ENDPOINT_URL_STS;
        withRole.close();
        await Promise.all([store.close(), sts.close()]);
      }
    });

    it('can be aborted twice, and cannot be completed afterwards', async () => {
      const { upload, parts } = await uploadTo('aborted');
      await abortUpload(requests, 'aborted', upload.upload_id, signal);
      await abortUpload(requests, 'aborted', upload.upload_id, signal);
      await expect(upload.complete(parts, length, signal)).rejects.toMatchObject({ type: 'UploadNotFound' });
      const open = await bucket.client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
      expect(open.Uploads ?? []).toEqual([]);
    });

    it('is the only upload of its key although responses of earlier attempts were lost', async () => {
      const openOf = async (key: string) => {
        const list = new ListMultipartUploadsCommand({ Bucket: bucket.bucket, Prefix: key });
        return ((await bucket.client.send(list)).Uploads ?? []).map(({ UploadId }) => UploadId);
      };
      const losing = losingResponses(requests, 'CreateMultipartUpload');
      const { upload_id } = await createUpload(losing, 'unanswered', options, signal);
      expect(await openOf('unanswered')).toEqual([upload_id]);
      await abortUpload(requests, 'unanswered', upload_id, signal);

      const cut: S3Requests = {
        ...requests,
        send: async (operation, until, call) => {
          const response = await requests.send(operation, until, call);
          if (operation !== 'CreateMultipartUpload') return response;
          throw new DestinationError('S3Unreachable', 'Cut.', { transient: true });
        },
      };
      await expect(createUpload(cut, 'unanswered', options, signal)).rejects.toMatchObject({
        type: 'S3Unreachable',
      });
      expect(await openOf('unanswered')).toEqual([]);

      const blind = denying(losing, 'ListMultipartUploads');
      expect(await createUpload(blind, 'unseen', options, signal)).toMatchObject({ key: 'unseen' });
      for (const id of await openOf('unseen')) await abortUpload(requests, 'unseen', id ?? '', signal);
    });

    it('is aborted when it is created after the attempt was cancelled', async () => {
      const proxy = await createS3Proxy(bucket.endpoint);
      const proxied = requestsOf(bucket, { endpoint_url: proxy.endpoint });
      try {
        const gate = blockRequests(proxy, 'the creation of an upload', {
          when: 'before',
          matches: ({ operation }) => operation === 'CreateMultipartUpload',
        });
        const attempt = new AbortController();
        const creating = createUpload(proxied, 'late', options, attempt.signal);
        await gate.reached();
        attempt.abort(new Error('cancelled'));
        gate.open();
        await expect(creating).rejects.toThrow('cancelled');
        const operations = proxy.requests.map(({ operation }) => operation);
        expect(operations).toEqual(['CreateMultipartUpload', 'AbortMultipartUpload']);
        const list = new ListMultipartUploadsCommand({ Bucket: bucket.bucket, Prefix: 'late' });
        expect((await bucket.client.send(list)).Uploads ?? []).toEqual([]);
      } finally {
        proxied.close();
        await proxy.close();
      }
    });

    it('is completed by a server without conditional writes', async () => {
      const reported: string[] = [];
      const simple = {
        ...withoutConditionalWrites(requests),
        report: ({ type }: { type: string }) => reported.push(type),
      };
      const { upload, parts } = await uploadTo('simple', simple);
      await upload.complete(parts, length, signal);
      expect(reported).toEqual(['NotImplemented']);
      expect((await textOf('simple')).length).toBe(length);
    });

    it('lists more parts than one response contains', async () => {
      const upload = await createUpload(requests, 'many', options, signal);
      const numbers = [1, 2, 3, 4, 5];
      for (const number of numbers) await upload.putPart(number, Buffer.from('x'), signal);
      const paged = requestsOf(bucket);
      const sizes: number[] = [];
      const listed = await listParts(withShortPages(paged, 2, sizes), 'many', upload.upload_id, signal);
      expect(listed.map(({ part_number }) => part_number)).toEqual(numbers);
      expect(sizes).toEqual([2, 2, 1]);
      paged.close();
      await abortUpload(requests, 'many', upload.upload_id, signal);
    });

    it('stops when the signal is aborted', async () => {
      const { upload } = await uploadTo('stopped');
      const reason = new Error('stop');
      await expect(upload.putPart(2, first, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
  });

  describe('an unusable destination', () => {
    const file = { key: 'x', contentType: 'text/plain', upload_token: 'token' };
    it.each([
      ['InvalidAccessKeyId', { aws_access_key_id: 'nobody' }],
      ['SignatureDoesNotMatch', { aws_secret_access_key: 'wrong' }],
      ['NoSuchBucket', { bucket_name: 'no-such-bucket-anywhere' }],
      ['AuthorizationHeaderMalformed', { region: 'eu-west-9' }],
    ])('fails at once with %s', async (type, change) => {
      const destination = openBucket(bucket, change);
      await expect(destination.createUpload(file, signal)).rejects.toMatchObject({
        type,
        transient: false,
      });
      destination.close();
    });

    it('is retried when the server does not respond', async () => {
      const destination = openBucket(bucket, { endpoint_url: 'http://127.0.0.1:1' });
      await expect(destination.createUpload(file, signal)).rejects.toMatchObject({
        type: 'S3Unreachable',
        transient: true,
      });
      destination.close();
    });
  });
});

describe('an S3 server with a certificate of its own CA', () => {
  const authority = createCertificateAuthority();
  const publicAuthority = createCertificateAuthority('a public CA');
  const bucket = useTestBucket();
  let trusting: Record<string, string>;
  const proxies: TlsProxy[] = [];

  beforeAll(() => {
    const path = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'tls-')), 'authority.pem');
    writeFileSync(path, authority.certificate);
    trusting = { EXPORTD_S3_CA_BUNDLE: path };
  });
  afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())));

  /** Starts a server of the bucket with TLS, and returns a config of the bucket there. */
  async function configBehind(issuer: typeof authority, name = 'localhost'): Promise<object> {
    const proxy = await openTlsProxy(bucket.endpoint, issuer.issue(name));
    proxies.push(proxy);
    return configOf(bucket, { endpoint_url: `https://localhost:${proxy.port}` });
  }

  it('is used with EXPORTD_S3_CA_BUNDLE', async () => {
    const settings = s3Settings({ ...trusting, EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
    const { steps } = await testS3(parseS3Config(await configBehind(authority), settings), settings);
    expect(steps.map(({ result }) => result.status)).toEqual(steps.map(() => 'Passed'));
  });

  it('is rejected without it, and when the certificate is of another host', async () => {
    const withoutBundle = await requestError(await configBehind(authority), s3Settings());
    const otherHost = await requestError(
      await configBehind(authority, 'other.example'),
      s3Settings(trusting),
    );
    // In Jest the SDK replaces errors of Node's own realm, and loses their codes.
    expect([withoutBundle, otherHost]).toEqual([expect.any(DestinationError), expect.any(DestinationError)]);
  });

  it.each(['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'is reported with the setting: %s',
    (code) => {
      expect(toDestinationError(Object.assign(new Error('TLS'), { code }), 'HeadBucket')).toMatchObject({
        type: 'TlsError',
        message: expect.stringContaining('EXPORTD_S3_CA_BUNDLE'),
      });
    },
  );

  it('is trusted besides the CAs that Node trusts', async () => {
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, publicAuthority.certificate]);
    try {
      const path = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'tls-')), 'another.pem');
      writeFileSync(path, createCertificateAuthority('another CA').certificate);
      const settings = s3Settings({ EXPORTD_S3_CA_BUNDLE: path });
      expect(await requestError(await configBehind(publicAuthority), settings)).toBeNull();
    } finally {
      setDefaultCACertificates(trusted);
    }
  });
});
